import * as v from 'valibot';
import { WaymarkError } from '../core/error.ts';
import { hasShape, setShape } from '../core/frozen-mark.ts';
import { toJson } from '../core/json.ts';
import { type Message, message } from './message.ts';
import { type Artifact, artifact } from './state.ts';

/** The most faults one error message names. */
const mostFaults = 3;

/** Parses a value from outside; `INVALID_ARGUMENT` names what was wrong, and where. */
export function parseShape<Schema extends v.GenericSchema>(
  schema: Schema,
  value: unknown,
  what: string,
): v.InferOutput<Schema> {
  const result = v.safeParse(schema, value);
  if (result.success) return result.output;
  const faults = result.issues
    .slice(0, mostFaults)
    .map((issue) => `${v.getDotPath(issue) ?? what}: ${issue.message}`);
  throw new WaymarkError('INVALID_ARGUMENT', `Not a valid ${what}. ${faults.join('; ')}`);
}

function parseOnce<Schema extends v.GenericSchema>(
  schema: Schema,
  value: unknown,
  what: string,
): v.InferOutput<Schema> {
  // What came through here before is frozen, so still valid.
  if (typeof value === 'object' && value !== null && hasShape(value, schema)) return value;
  const frozen = toJson(parseShape(schema, value, what), what) as object;
  setShape(frozen, schema);
  return frozen;
}

/** A message, checked, copied and frozen; one that came through here before is given back as it is. */
export function parseMessage(value: unknown): Message {
  return parseOnce(message, value, 'message');
}

/** Whether a value is a message that came through {@link parseMessage}. */
export function isParsedMessage(value: unknown): value is Message {
  return typeof value === 'object' && value !== null && hasShape(value, message);
}

/** An artifact, checked, copied and frozen; one that came through here before is given back as it is. */
export function parseArtifact(value: unknown): Artifact {
  return parseOnce(artifact, value, 'artifact');
}
