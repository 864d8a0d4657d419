import type { ActionContext } from '../../core/action.ts';
import { invalid, isWaymarkError, WaymarkError } from '../../core/error.ts';
import { type DatesAsText, datesAsText } from '../../core/json/dates.ts';
import { isJsonObject, type Json, type JsonObject } from '../../core/json/json.ts';
import type { Clock } from '../../core/time.ts';
import type { ToolRequestPart } from '../../protocol/message.ts';

/** The second argument of a tool; an app adds to it, such as the session. */
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

/** The fate of a tool call that gets no answer before its deadline. */
type OnExpiry = 'decline' | 'fail';

/** Until when a tool call waits for the answer of a person. Without `expiresIn` and `expiresAt` it waits forever. */
export interface InterruptDeadline {
  /** Milliseconds from now. */
  readonly expiresIn?: number;
  /** A point in time, instead of `expiresIn`. */
  readonly expiresAt?: Date;
  /**
   * `decline`: the turn continues, and the model reads that there was no answer. `fail`: the turn fails with
   * `DEADLINE_EXCEEDED`.
   * @default 'decline'
   */
  readonly onExpiry?: OnExpiry;
}

/** A deadline as it is stored with the request that waits. */
export function deadlineMetadata(
  { expiresIn, expiresAt, onExpiry }: InterruptDeadline,
  clock: Clock,
): JsonObject {
  if (expiresIn === undefined && expiresAt === undefined) return {};
  const time = expiresAt?.getTime() ?? clock.now() + Number(expiresIn);
  if (!(Math.abs(time) <= latestTime) || (expiresIn !== undefined && !(expiresIn > 0))) {
    throw invalid(
      'The deadline of an interrupt must be a positive number of milliseconds (`expiresIn`) or a valid date (`expiresAt`).',
    );
  }
  return {
    expiresAt: new Date(time).toISOString(),
    ...(onExpiry === 'fail' && { onExpiry }),
  };
}

/**
 * The deadline of requests that are answered together, as milliseconds: the latest of theirs. `undefined` if one of them waits
 * forever.
 */
export function latestDeadline(requests: readonly ToolRequestPart[]): number | undefined {
  const times = requests.map(({ metadata }) => Date.parse(String(metadata?.expiresAt)));
  const latest = Math.max(...times);
  return Number.isFinite(latest) ? latest : undefined;
}

/** The deadline of a call that waits for these requests. */
export function deadlineOf(requests: readonly ToolRequestPart[]): InterruptDeadline {
  const latest = latestDeadline(requests);
  if (latest === undefined) return {};
  const fails = requests.some(({ metadata }) => metadata?.onExpiry === 'fail');
  return { expiresAt: new Date(latest), ...(fails && { onExpiry: 'fail' }) };
}

/** The latest time that a date can have. */
const latestTime = 8.64e15;

/** The progress of a call's approval: a person was asked, or has approved it. */
export type ApprovalState = 'asked' | 'given';

const progressKey = Symbol('approval');

interface ApprovalProgress {
  readonly state: ApprovalState | undefined;
  readonly set: (state: ApprovalState) => void;
}

/**
 * For the context of a call: the progress of its approval when the call waited, and the function that stores further progress. It
 * is stored beside the data of the tool's interrupt: the answer to a question of the tool is no approval, whatever the question
 * contains.
 */
export function approvalProgress(progress: ApprovalProgress): object {
  return { [progressKey]: progress };
}

/**
 * Lets a call continue only if a person has approved it: interrupts it with `{ approval: { tool, input } }` the first time, and
 * refuses it with PERMISSION_DENIED when it was declined.
 */
export function requireApproval(
  { name, input = null }: { readonly name: string; readonly input?: Json | undefined },
  context: ToolContext,
  deadline: InterruptDeadline = {},
): void {
  const progress = (context as { readonly [progressKey]?: ApprovalProgress })[progressKey];
  const { state, set } = progress ?? { state: undefined, set() {} };
  // When it was given before, the tool ran, and has interrupted with its own question.
  if (state === undefined || (state === 'asked' && context.resumed === undefined)) {
    set('asked');
    context.interrupt({ approval: { tool: name, input } }, deadline);
  }
  const { isApproved, reason } = decision(context.resumed);
  if (state === 'given' || isApproved) {
    set('given');
    return;
  }
  const because = reason === undefined ? '' : ` The reason: ${reason}`;
  throw new WaymarkError('PERMISSION_DENIED', `The user did not approve tool "${name}".${because}`);
}

// Only a clear yes is a yes.
function decision(resumed: Json | undefined): { isApproved: boolean; reason: string | undefined } {
  if (resumed === true) return { isApproved: true, reason: undefined };
  const { approved, reason } = isJsonObject(resumed) ? resumed : {};
  return { isApproved: approved === true, reason: typeof reason === 'string' ? reason : undefined };
}

/**
 * Whether a call ends because another worker has taken over its run. The work that it started elsewhere then belongs to that
 * worker: cancel it only if the turn was stopped.
 */
export function isLostRun({ aborted, reason }: AbortSignal): boolean {
  return aborted && isWaymarkError(reason) && reason.status === 'ABORTED';
}
