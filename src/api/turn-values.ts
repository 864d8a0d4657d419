import { invalid, isStatus, isWaymarkError, WaymarkError } from '../core/error.ts';
import type { JsonObject } from '../core/json/json.ts';
import type { JsonSchema, Schema } from '../core/schema/schema.ts';
import type { Message } from '../protocol/message.ts';
import { reachesEnd } from '../protocol/message-page.ts';
import { type Summary, summaryOf, textOf } from '../protocol/messages.ts';
import type { CallerToolInfo, Input, Output } from '../protocol/turn.ts';
import {
  type Interrupt,
  type InterruptAnswer,
  interruptsAtEnd,
  interruptsOf,
  isAnswer,
  toResume,
} from './interrupts.ts';

/** The input of a turn that answers interrupts: what `approve`, `respond` or `decline` of an interrupt returned, or several of them. */
interface AnswerInput extends Omit<Input, 'resume'> {
  /** The answers. */
  readonly resume: InterruptAnswer | readonly InterruptAnswer[];
}

/** The input of a turn: the user's text, a message, a full input, or answers to interrupts. */
export type TurnInput = string | Message | Input | AnswerInput;

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

/** Identifies a snapshot: its id, the snapshot itself, or the output of the turn that saved it. */
export type SnapshotRef = string | { readonly snapshotId?: string | undefined };

export function snapshotIdOf(ref: SnapshotRef): string {
  if (typeof ref !== 'object' || ref === null) return ref;
  // Anything that is not an id is refused where ids are checked.
  if (ref.snapshotId !== undefined || !('sessionId' in ref)) return ref.snapshotId as string;
  throw invalid('The turn saved no snapshot: the agent has no store, or its policy saves none.');
}

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
    throw invalid('`tools` must be an array of { name, inputSchema }.');
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

/** Computed properties of an output. They are not part of its JSON. */
export interface OutputAccessors {
  /** The text of the answer, '' if there is none. */
  readonly text: string;
  /** The tool calls that wait for an answer; empty unless the turn was interrupted. */
  readonly interrupts: readonly Interrupt[];
}

/** Computed properties of a snapshot or session. They are not part of its JSON. */
export interface StateAccessors {
  /** The text of the latest answer, '' if there is none. */
  readonly text: string;
  /** The tool calls that wait for an answer. */
  readonly interrupts: readonly Interrupt[];
  /** The summary that the model gets in place of the older messages; `undefined` if it gets all of them. */
  readonly summary: Summary | undefined;
}

interface WithMessage {
  readonly message?: Message | undefined;
}

interface WithState {
  readonly state?: { readonly messages?: readonly Message[] | undefined } | undefined;
  readonly messageRange?: { readonly from: number; readonly total: number } | undefined;
}

// Shared by all outputs: they read what they describe by `this`.
const ofOutput = accessorsOf<WithMessage>({
  get text() {
    return textOf(this.message);
  },
  get interrupts() {
    return interruptsOf(this.message);
  },
});

const ofState = accessorsOf<WithState>({
  get text() {
    return textOf(this.state?.messages?.findLast(({ role }) => role === 'model'));
  },
  get interrupts() {
    // An earlier page of the messages says nothing about the end.
    return reachesEnd(this) ? interruptsAtEnd(this.state?.messages ?? []) : [];
  },
  get summary() {
    return summaryOf(this.state?.messages ?? []);
  },
});

type Accessors = readonly (readonly [string, PropertyDescriptor])[];

function accessorsOf<Given>(accessors: object & ThisType<Given>): Accessors {
  const all = Object.entries(Object.getOwnPropertyDescriptors(accessors));
  return all.map(([name, { get }]) => [name, { get: get as () => unknown }]);
}

/** Adds the accessors to an output. They are not enumerable: as JSON, and to `toEqual`, it stays what it was. */
export function describeOutput<Given extends WithMessage>(output: Given): Given & OutputAccessors {
  return described(output, ofOutput) as Given & OutputAccessors;
}

export function describeState<Given extends WithState>(given: Given): Given & StateAccessors {
  return described(given, ofState) as Given & StateAccessors;
}

function described<Given extends object>(given: Given, accessors: Accessors): Given {
  if ('interrupts' in given) return given;
  const target = Object.isExtensible(given) ? given : { ...given };
  // One by one, which takes half as long as `defineProperties`.
  for (const [name, accessor] of accessors) Object.defineProperty(target, name, accessor);
  return target;
}

/**
 * A failed turn. The status and message are those of the original error, which is the `cause`; `output` is the output
 * of the turn, with the last good snapshot.
 *
 * @example
 * try {
 *   await chat.run('Hello');
 * } catch (error) {
 *   if (isTurnError(error)) await chat.restore(error.output);
 * }
 */
export class TurnError<Result extends Output = Output> extends WaymarkError {
  /** The output of the failed turn, with the last good snapshot. */
  declare readonly output: Result & OutputAccessors;

  constructor(output: Result) {
    const { error } = output;
    const status = isStatus(error?.status) ? error.status : 'UNKNOWN';
    super(status, error?.message ?? 'The turn failed.', {
      details: error?.details,
      cause: causeOf(error),
      publicMessage: isWaymarkError(error) ? error.publicMessage : undefined,
    });
    // Not enumerable: a printed error shows its message and stack only.
    Object.defineProperty(this, 'output', { value: describeOutput(output) });
  }
}

Object.defineProperty(TurnError.prototype, 'name', { value: 'TurnError' });

/** Whether a thrown value is a `TurnError`, also from another copy of this package. */
export function isTurnError(error: unknown): error is TurnError {
  return isWaymarkError(error) && error.name === 'TurnError' && 'output' in error;
}

export function throwIfFailed<Result extends Output>(output: Result): Result {
  if (output.finishReason === 'failed') throw new TurnError(output);
  return output;
}

// In this process the error of an output is the one that was thrown, or wraps it.
function causeOf(error: Output['error']): unknown {
  if (!(error instanceof Error)) return undefined;
  return error.cause ?? error;
}
