import { toWaymarkError, WaymarkError } from '../../core/error.ts';

/** Why an invocation was told to end before its work was done. */
export type StopCause =
  /** The caller stopped it: the partial answer is kept. */
  | { readonly kind: 'stop' }
  /** Another worker has the run: nothing more may be written. */
  | { readonly kind: 'lost' }
  /** A limit was reached. */
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

  /** Stops gracefully. */
  stop(reason?: unknown): void {
    this.#end({ kind: 'stop' }, reason);
  }

  /** Stops at once and writes nothing more. */
  markLost(): void {
    const reason = new WaymarkError('ABORTED', 'Another worker has taken over this run.');
    this.#end({ kind: 'lost' }, reason);
  }

  /** Ends with an error. */
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

  /** Ignores the caller's signal from now on. */
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
