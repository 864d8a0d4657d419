import { WaymarkError } from '../core/error.ts';
import type { JsonObject } from '../core/json/json.ts';
import type { JsonSchema, Schema } from '../core/schema/schema.ts';
import type { Message } from '../protocol/message.ts';
import type { CallerToolInfo, Input } from '../protocol/turn.ts';
import { type InterruptAnswer, isAnswer, toResume } from './interrupts.ts';

/** The input of a turn that answers interrupts: what `approve`, `respond` or `decline` of an interrupt returned, or several of them. */
export interface AnswerInput extends Omit<Input, 'resume'> {
  /** The answers. */
  readonly resume: InterruptAnswer | readonly InterruptAnswer[];
}

/** The input of a turn: the user's text, a message, a full input, or answers to interrupts. */
export type TurnInput = string | Message | Input | AnswerInput;

/** The input for a text or a message. */
export function toInput(given: TurnInput): Input {
  if ((given ?? '') === '') {
    throw invalid(
      "The input is empty. Pass the user's text, a message, or an input such as { message } or { resume }.",
    );
  }
  if (typeof given === 'string') return { message: { role: 'user', content: [{ text: given }] } };
  if (Array.isArray(given)) {
    throw invalid('The input is an array. Pass one input per call.');
  }
  // Other types are refused where the input is parsed.
  if (typeof given !== 'object') return given;
  if ('role' in given) return { message: given };
  const { resume } = checkFields(given);
  if (Array.isArray(resume) || isAnswer(resume)) return { ...given, resume: toResume(resume) };
  return given as Input;
}

/** Refuses an input that says nothing under our names, such as `{ prompt }`. */
function checkFields(given: Input | AnswerInput): Input | AnswerInput {
  const [other] = Object.keys(given);
  const { message, resume, detach } = given;
  if (message !== undefined || resume !== undefined || detach !== undefined || !other) return given;
  throw invalid(
    `The input has "${other}", but neither \`message\` nor \`resume\`. Pass the user's text or a message.`,
  );
}

function invalid(message: string): WaymarkError {
  return new WaymarkError('INVALID_ARGUMENT', message);
}

/** Identifies a snapshot: its id, the snapshot itself, or the output of the turn that saved it. */
export type SnapshotRef = string | { readonly snapshotId?: string | undefined };

/** The id of a snapshot, an output or an id. */
export function snapshotIdOf(ref: SnapshotRef): string {
  if (typeof ref !== 'object' || ref === null) return ref;
  // Anything that is not an id is refused where ids are checked.
  if (ref.snapshotId !== undefined || !('sessionId' in ref)) return ref.snapshotId as string;
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    'The turn saved no snapshot: the agent has no store, or its policy saves none.',
  );
}

/** The id of a session: of an output, a snapshot, a session, or the id itself. */
export function sessionIdOf<Id extends string | undefined>(
  ref: Id | { readonly sessionId: string },
): Id | string {
  // Anything that is not an id is refused where ids are checked.
  return (ref as { readonly sessionId?: string } | null)?.sessionId ?? (ref as Id);
}

/** A tool that the caller executes. */
export interface CallerTool {
  /** At most 64 letters, digits, `_` and `-`; no tool of the agent may have the same name. */
  readonly name: string;
  /** Tells the model what the tool does and when to use it. */
  readonly description?: string;
  /** The schema of the tool's input: a JSON Schema, or one of zod, arktype or another Standard Schema library. */
  readonly inputSchema: Schema;
}

/** The input with the tools of its call, their schemas as JSON Schema. Where the input is parsed, they are checked. */
export function withCallerTools(
  input: Input,
  tools: readonly CallerTool[] | undefined,
  toJsonSchema: (schema: Schema) => JsonSchema,
): Input {
  if (tools === undefined) return input;
  if (!Array.isArray(tools)) {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      '`tools` must be an array of { name, inputSchema }.',
    );
  }
  const infos = tools.map(
    (tool: CallerTool): CallerToolInfo => ({
      ...tool,
      // Callers in plain JavaScript have no types; what has no schema is refused.
      inputSchema: toJsonSchema(tool?.inputSchema) as JsonObject,
    }),
  );
  return { ...input, tools: infos };
}
