import { isWaymarkError, toWaymarkError, WaymarkError } from '../../core/error.ts';
import { after, type Clock } from '../../core/time.ts';
import { closeToolRequests } from '../../generate/tool/resume.ts';
import type { PartialAnswer } from '../../protocol/messages.ts';
import type { ModelChunk } from '../../protocol/turn.ts';
import type { WorkingState } from '../../session/working-state.ts';
import { type ActiveRun, lastRound, type Outcome } from './turn-state.ts';

/** Why an invocation was told to end before its work was done. */
type StopCause =
  /** The caller stopped it: the partial answer is kept. */
  | { readonly kind: 'stop' }
  /** Another worker has the run: nothing more may be written. */
  | { readonly kind: 'lost' }
  | { readonly kind: 'failed'; readonly error: WaymarkError };

/** Stops an invocation. Only the first cause counts. */
export class StopControl {
  readonly #controller = new AbortController();
  #cause: StopCause | undefined;
  #unfollow: (() => void) | undefined;
  readonly #listeners = new Set<() => void>();

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get cause(): StopCause | undefined {
    return this.#cause;
  }

  /** Calls back once it is stopped, before the signal aborts. Returns a function that ends this; both cost less than a listener of the signal. */
  onStop(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  stop(reason?: unknown): void {
    this.#end({ kind: 'stop' }, reason);
  }

  /** Stops at once and writes nothing more. */
  markLost(): void {
    const reason = new WaymarkError('ABORTED', 'Another worker has taken over this run.');
    this.#end({ kind: 'lost' }, reason);
  }

  fail(error: unknown): void {
    this.#end({ kind: 'failed', error: toWaymarkError(error) }, error);
  }

  /** Stops when the caller's signal does, until {@link StopControl.unfollow}. */
  follow(signal: AbortSignal | undefined): void {
    if (signal === undefined) return;
    if (signal.aborted) {
      this.stop(signal.reason);
      return;
    }
    const onAbort = (): void => this.stop(signal.reason);
    const unfollow = (): void => signal.removeEventListener('abort', onAbort);
    signal.addEventListener('abort', onAbort, { once: true });
    this.#unfollow = unfollow;
  }

  unfollow(): void {
    this.#unfollow?.();
    this.#unfollow = undefined;
  }

  #end(cause: StopCause, reason?: unknown): void {
    if (this.#cause !== undefined) return;
    this.#cause = cause;
    this.unfollow();
    for (const listener of this.#listeners) listener();
    this.#controller.abort(reason);
  }
}

export function stoppedBy(cause: StopCause): Outcome {
  switch (cause.kind) {
    case 'failed':
      return { kind: 'failed', error: cause.error };
    case 'lost':
      return { kind: 'lost' };
    case 'stop':
      return { kind: 'stopped' };
  }
}

/** How long a turn function may take to return after a stop, before the turn ends without it. */
export const turnStopTimeoutMs = 5_000;

/** The same for the handler, which is longer so that the turn inside it can still save its partial answer. */
export const handlerStopTimeoutMs: number = 2 * turnStopTimeoutMs;

export class StopTimeoutError extends Error {}

/** Waits for work, and after a stop only for this long: user code may ignore its signal. */
export function withStopTimeout<Value>(
  {
    control,
    host: { clock },
  }: { readonly control: StopControl; readonly host: { readonly clock: Clock } },
  work: Promise<Value>,
  ms: number,
): Promise<Value> {
  return new Promise<Value>((resolve, reject) => {
    let cancel: (() => void) | undefined;
    const onStop = (): void => {
      cancel = after(clock, ms, () => reject(new StopTimeoutError()), { keepAlive: true });
    };
    const unlisten = control.onStop(onStop);
    const end = (): void => {
      unlisten();
      cancel?.();
    };
    // Also handles a rejection after the timeout.
    work.then(
      (value) => {
        end();
        resolve(value);
      },
      (error: unknown) => {
        end();
        reject(error);
      },
    );
    if (control.cause !== undefined) onStop();
  });
}

/**
 * Reads or writes data of a run. If the store refuses because another worker has taken over the run, the run has not failed: it
 * is lost to this process. During a store outage a worker cannot renew its claim, so a detached run is left to the worker that
 * takes it over afterwards.
 */
export async function markingLost<Value>(
  { run, control }: { readonly run: ActiveRun | undefined; readonly control: StopControl },
  work: () => Promise<Value>,
): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    const status = isWaymarkError(error) ? error.status : undefined;
    const isAway = status === 'UNAVAILABLE' && run?.detached !== undefined;
    if (isAway || status === 'ABORTED') control.markLost();
    throw error;
  }
}

/** After a stop: keeps the partial answer as a message, and closes open tool requests so that every provider accepts the history. */
export function keepPartialAnswer(stopped: {
  readonly working: WorkingState;
  readonly partial: PartialAnswer;
}): void {
  const { working, partial } = stopped;
  const { content } = partial;
  if (content.length > 0) working.addMessages([{ role: 'model', content }]);
  const closing = closeToolRequests(lastRound(working.state.history), 'aborted');
  if (closing !== undefined) working.addMessages([closing]);
}

/** Collects the model's answer, in case the turn is stopped. */
export function noteChunk(partial: PartialAnswer, { role = 'model', content }: ModelChunk): void {
  if (role === 'model') for (const part of content) partial.add(part);
}

// As V8 and JavaScriptCore say it.
const frozen =
  /object is not extensible|object that is not extensible|read.?only property|(Cannot|Unable to) delete property/i;
const advice =
  'Values read from the session are frozen: to change the custom state, use session.updateCustom((draft) => …).';

/** Extends the engine's error for a change of a frozen value by how to change the state of a session. */
export function adviseFrozen(error: unknown): void {
  if (!(error instanceof TypeError) || !frozen.test(error.message)) return;
  const { message, stack } = error;
  if (message.endsWith(advice)) return;
  error.message = `${message.replace(/\.$/, '')}. ${advice}`;
  if (stack !== undefined) error.stack = stack.replace(message, () => error.message);
}
