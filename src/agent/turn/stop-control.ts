import { toWaymarkError, type WaymarkError } from '../../core/error.ts';

/** Why an invocation was told to end before its work was done. */
export type StopCause =
  /** Somebody wants no more of it: what there is so far is kept. */
  | { readonly kind: 'stop' }
  /** The run belongs to somebody else now: nothing more may be written. */
  | { readonly kind: 'lost' }
  /** A limit was reached. */
  | { readonly kind: 'failed'; readonly error: WaymarkError };

/** The one switch of an invocation. Whatever is thrown first stands. */
export class StopControl {
  readonly #controller = new AbortController();
  #cause: StopCause | undefined;
  #unfollow: (() => void) | undefined;

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get cause(): StopCause | undefined {
    return this.#cause;
  }

  /** Stops gracefully. */
  stop(reason?: unknown): void {
    this.#end({ kind: 'stop' }, reason);
  }

  /** Stops at once, without a trace. */
  markLost(): void {
    this.#end({ kind: 'lost' });
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

  /** Goes on without the caller. */
  unfollow(): void {
    this.#unfollow?.();
    this.#unfollow = undefined;
  }

  #end(cause: StopCause, reason?: unknown): void {
    if (this.#cause !== undefined) return;
    this.#cause = cause;
    this.unfollow();
    this.#controller.abort(reason);
  }
}
