import type { Clock } from '../core/clock.ts';
import type { RunRef, Store } from '../session/store.ts';
import type { Control } from './control.ts';

/** A run that this process works on. */
export interface LiveRun {
  readonly ref: RunRef;
  readonly store: Store;
  readonly control: Control;
  /** Goes on in another process when this one lets go of it. */
  readonly recoverable: () => boolean;
}

/** The runs that this process works on: keeps their claims alive, and passes on what others ask of them. */
export interface LiveRuns {
  add(run: LiveRun): () => void;
  list(): readonly LiveRun[];
  /** Prolongs all claims now, also those that have expired while the process stood still and nobody has taken. */
  beat(): Promise<void>;
}

export function createLiveRuns(options: { readonly clock: Clock; readonly ttl: number }): LiveRuns {
  const { clock, ttl } = options;
  const runs = new Map<LiveRun, { lastSeen: number }>();
  let stopTicking: (() => void) | undefined;

  const beat = async (run: LiveRun): Promise<void> => {
    const entry = runs.get(run);
    if (entry === undefined) return;
    try {
      const signal = await run.store.runs?.heartbeat(run.ref);
      if (!runs.has(run)) return;
      entry.lastSeen = clock.now();
      if (signal === 'stop') run.control.stop();
      else if (signal === 'lost') run.control.lose();
    } catch {
      // The store may come back; but once the claim must have expired, the run may be somebody else's.
      if (clock.now() - entry.lastSeen > ttl) run.control.lose();
    }
  };
  const beatAll = async (): Promise<void> => {
    await Promise.all([...runs.keys()].map(beat));
  };
  // Ends by itself when there was nothing to do for a while: a timer for each turn would cost more than its claim.
  const tick = (): void => {
    if (runs.size > 0) void beatAll();
    else {
      stopTicking?.();
      stopTicking = undefined;
    }
  };

  return {
    add(run) {
      runs.set(run, { lastSeen: clock.now() });
      stopTicking ??= clock.every(Math.max(10, ttl / 3), tick);
      const unlisten = run.store.abort?.onChange(run.ref.runId, () => void beat(run));
      return () => {
        unlisten?.();
        runs.delete(run);
      };
    },
    list: () => [...runs.keys()],
    beat: beatAll,
  };
}
