import * as v from 'valibot';
import { invalid } from '../core/error.ts';
import { hasShape, markFrozen, setShape, toJson } from '../core/json/json.ts';
import { type Message, message, type Role, role } from './message.ts';
import { plainTextOf } from './messages.ts';
import { type Artifact, artifact } from './state.ts';
import { agentInput, type Input } from './turn.ts';

/** The longest text of one fault: it may echo a key or a value. */
const maxFaultLength = 300;

/**
 * Parses a value from outside; `INVALID_ARGUMENT` names the first fault, and where it is. Parsing stops there: a value
 * with a million faults must not cost more than one with a single fault.
 */
export function parseShape<Schema extends v.GenericSchema>(
  schema: Schema,
  value: unknown,
  what: string,
): v.InferOutput<Schema> {
  const result = v.safeParse(schema, value, { abortEarly: true });
  if (result.success) return result.output;
  const [issue] = result.issues;
  const fault = `${v.getDotPath(issue) ?? what}: ${issue.message}`;
  const text = fault.length > maxFaultLength ? `${fault.slice(0, maxFaultLength - 1)}…` : fault;
  throw invalid(`Not a valid ${what}. ${text}`);
}

function parseOnce<Schema extends v.GenericSchema>(
  schema: Schema,
  value: unknown,
  what: string,
): v.InferOutput<Schema> {
  // A value that came through here before is frozen, so still valid.
  if (typeof value === 'object' && value !== null && hasShape(value, schema)) return value;
  const frozen = toJson(parseShape(schema, value, what), what) as object;
  setShape(frozen, schema);
  return frozen;
}

/** A message, checked, copied and frozen; one that came through here before is given back as it is. */
export function parseMessage(value: unknown): Message {
  if (isParsedMessage(value)) return value;
  return parseTextMessage(value) ?? parseOnce(message, value, 'message');
}

/**
 * A message of one text, as {@link parseMessage} gives it. Most messages are such, and there are many of them: it is made
 * small. Only the message as a whole is sealed, and its mark fits into the room that V8 gives an object which begins empty.
 */
export function textMessage(role: Role, text: string): Message {
  const made: { role?: Role; content?: Message['content'] } = {};
  made.role = role;
  made.content = Object.freeze([Object.freeze({ text })]) as Message['content'];
  setShape(markFrozen(made), message);
  return made as Message;
}

// The schema would say the same, in ten times the time.
function parseTextMessage(value: unknown): Message | undefined {
  const text = plainTextOf(value);
  if (text === undefined) return undefined;
  const { role: side } = value as Message;
  return v.is(role, side) ? textMessage(side, text) : undefined;
}

/** The input of a turn, checked and copied. Nearly all inputs are one text of the user, for which the schema is not needed. */
export function parseInput(value: unknown): Input {
  if (typeof value !== 'object' || value === null || !('message' in value)) {
    return parseShape(agentInput, value, 'input');
  }
  const { message: given, ...rest } = value;
  const text = plainTextOf(given);
  if (text === undefined || (given as Message).role !== 'user') {
    return parseShape(agentInput, value, 'input');
  }
  const isBare = Object.keys(rest).length === 0;
  return {
    ...(isBare ? undefined : parseShape(agentInput, rest, 'input')),
    message: { role: 'user', content: [{ text }] },
  };
}

/** Whether a value is a message that came through {@link parseMessage}. */
export function isParsedMessage(value: unknown): value is Message {
  return typeof value === 'object' && value !== null && hasShape(value, message);
}

/** An artifact, checked, copied and frozen; one that came through here before is given back as it is. */
export function parseArtifact(value: unknown): Artifact {
  return parseOnce(artifact, value, 'artifact');
}
