import * as v from 'valibot';
import { WaymarkError } from '../core/error.ts';
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

/** Values that came through here before: frozen, so still valid. */
const parsed = new WeakSet<object>();

function parseOnce<Schema extends v.GenericSchema>(
  schema: Schema,
  value: unknown,
  what: string,
): v.InferOutput<Schema> {
  if (typeof value === 'object' && value !== null && parsed.has(value)) return value;
  const frozen = toJson(parseShape(schema, value, what), what) as object;
  parsed.add(frozen);
  return frozen;
}

/** A message, checked, copied and frozen; one that came through here before is given back as it is. */
export function parseMessage(value: unknown): Message {
  return parseOnce(message, value, 'message');
}

/** An artifact, checked, copied and frozen; one that came through here before is given back as it is. */
export function parseArtifact(value: unknown): Artifact {
  return parseOnce(artifact, value, 'artifact');
}
