import { isWaymarkError, toErrorBody, WaymarkError } from '../error.ts';

/** A signal of one's own, which follows others until it is released. */
export interface LinkedSignal {
  readonly signal: AbortSignal;
  /** Aborts this signal alone; the followed ones are left as they are. */
  abort(reason?: unknown): void;
  /** Stops following and removes all listeners. */
  release(): void;
}

/**
 * A controller that may be created when a module is loaded, and whose signal may be used in every request. Workers allow
 * neither for an AbortController. Its signal is followed, read and listened to; it cannot be given to `fetch`.
 */
export function lifelongController(): {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
} {
  const signal = new LifelongSignal();
  return {
    // The missing members of an AbortSignal are of no use here.
    signal: signal as unknown as AbortSignal,
    abort: (reason) => signal.abort(reason),
  };
}

// Not an EventTarget: Node warns of a leak when one has more than ten listeners, and each stream of a server is one.
class LifelongSignal {
  aborted = false;
  reason: unknown;
  readonly #listeners = new Set<() => void>();

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.add(listener);
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.delete(listener);
  }

  abort(reason: unknown): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    for (const listener of listeners) listener();
  }
}

/** The error to throw for an aborted signal: its reason if that is ours, else CANCELLED or DEADLINE_EXCEEDED. */
export function abortError(signal: AbortSignal): WaymarkError {
  const { reason } = signal;
  if (isWaymarkError(reason)) return reason;
  const { status, message } = toErrorBody(reason);
  // A reason of any other kind explains a stop; it is not a failure.
  return status === 'DEADLINE_EXCEEDED'
    ? new WaymarkError(status, message, { cause: reason })
    : new WaymarkError('CANCELLED', 'The operation was cancelled.', { cause: reason });
}

export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw abortError(signal);
}

/** Waits for a promise or for the signal, whichever is first; leaves no listener behind. */
export function raceSignal<T>(promise: PromiseLike<T>, signal?: AbortSignal): Promise<T> {
  if (!signal) return Promise.resolve(promise);
  return new Promise<T>((resolve, reject) => {
    const unlisten = (): void => signal.removeEventListener('abort', onAbort);
    const onAbort = (): void => {
      unlisten();
      reject(abortError(signal));
    };
    // The promise is watched even when it has lost, so that its rejection is never unhandled.
    promise.then(
      (value) => {
        unlisten();
        resolve(value);
      },
      (error: unknown) => {
        unlisten();
        reject(error);
      },
    );
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort);
  });
}

/** A signal that aborts with the first of the given ones; release it when the work is done. */
export function linkSignals(...signals: readonly (AbortSignal | undefined)[]): LinkedSignal {
  return link(new AbortController(), signals);
}

/** As {@link linkSignals}, for code of this package only: its signal is one of a {@link lifelongController}, which costs less. */
export function linkLightly(...signals: readonly (AbortSignal | undefined)[]): LinkedSignal {
  return link(lifelongController(), signals);
}

function link(
  controller: Pick<AbortController, 'signal' | 'abort'>,
  signals: readonly (AbortSignal | undefined)[],
): LinkedSignal {
  const links: Link[] = [];
  const release = (): void => {
    for (const link of links) link.end();
    links.length = 0;
  };
  const abort = (reason?: unknown): void => {
    release();
    controller.abort(reason);
  };
  for (const signal of signals) {
    if (!signal) continue;
    if (signal.aborted) {
      abort(signal.reason);
      break;
    }
    links.push(new Link(signal, abort));
  }
  return { signal: controller.signal, abort, release };
}

/** One followed signal. Its listener is emptied as it ends: a signal that lives long keeps listeners longer than it has them. */
class Link {
  readonly #signal: AbortSignal;
  readonly #listener: () => void;
  #abort: ((reason: unknown) => void) | undefined;

  constructor(signal: AbortSignal, abort: (reason: unknown) => void) {
    const listener = (): void => this.#abort?.(signal.reason);
    this.#signal = signal;
    this.#abort = abort;
    this.#listener = listener;
    signal.addEventListener('abort', listener);
  }

  end(): void {
    this.#signal.removeEventListener('abort', this.#listener);
    this.#abort = undefined;
  }
}
