import type { ActionContext } from '../core/action.ts';
import { type DatesAsText, datesAsText } from '../core/json/dates.ts';
import type { Json, JsonObject } from '../core/json/json.ts';
import type { InterruptDeadline } from './interrupt-deadline.ts';

/** What a tool gets along with its input; an app adds to it, such as the session. */
export interface ToolContext {
  /** Aborts when the call is cancelled. */
  readonly signal: AbortSignal;
  /** Identifies this call among those of the same message. */
  readonly ref: string;
  /** The caller's context, such as the user. */
  readonly context: ActionContext;
  /** The value passed when the call was approved after an interrupt; `undefined` the first time. */
  readonly resumed: Json | undefined;
  /** The value that the call interrupted with, when it runs again; `undefined` the first time. */
  readonly interrupted: Json | undefined;
  /** The same for every attempt of this call. Pass it to external services so that an effect happens once. */
  readonly idempotencyKey: string;
  /**
   * Runs `fn` once per call, for example to start a job of an external service, and stores its result as JSON with the run, dates as text. If
   * another process continues the turn, `fn` is not called again. `name` tells the checkpoints of one call apart.
   */
  checkpoint<Value>(name: string, fn: () => Promise<Value> | Value): Promise<DatesAsText<Value>>;
  /**
   * Pauses this call until a person answers or approves it. `data` describes what you need. With a deadline, the call does not wait
   * forever.
   */
  interrupt(data?: Json, deadline?: InterruptDeadline): never;
  /** Adds parts such as images to the result, for models that can read them. */
  attach(...content: readonly JsonObject[]): void;
  /** Reports progress to clients; the model sees only the result. */
  stream(output: Json): void | Promise<void>;
}

/** A checkpoint outside of a run, where nothing is recorded. */
export const unrecorded: ToolContext['checkpoint'] = async (_, fn) => datesAsText(await fn());
