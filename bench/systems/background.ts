import type { Place } from './system.ts';

/** What a model that is called in the background tells of; `ended` is told when the run that it was called for has ended. */
export type ModelEvent = 'called' | 'stopped' | 'ended';

/** An agent whose runs go on without their caller. */
export interface Background {
  /** Starts a run in the background and resolves to its id. */
  detach(text: string): Promise<string>;
  /** Stops a run, wherever it is worked on. */
  abort(id: string): Promise<void>;
  /** When the worker of a run was last heard of, in milliseconds of the epoch. */
  lastSeen?(id: string): Promise<number>;
  /** Shuts down gracefully: runs are handed over to other processes. */
  close(): Promise<void>;
}

/**
 * Opens one. Its model answers at once, unless it is asked to wait: then it tells that it was called, waits for its signal,
 * and tells of that.
 */
export type OpenBackground = (
  variant: string,
  place: Pick<Place, 'directory' | 'postgres'>,
  onModel: (event: ModelEvent) => void,
) => Promise<Background>;

/** Milliseconds of silence after which a claim has expired, and between two looks for expired ones: Waymark's defaults. */
export const claimTtl = 5_000;
export const pollInterval = 2_500;

/** The text that makes the model wait. */
export const waitForSignal = 'wait';

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
