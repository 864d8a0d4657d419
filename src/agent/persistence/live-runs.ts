import type { Clock } from '../../core/time/clock.ts';
import type { RunRef, Store } from '../../store/contract/store.ts';

/** A run that this process works on. */
export interface LiveRun {
  readonly ref: RunRef;
  readonly store: Store;
  /** Stops the work on the run. */
  readonly control: {
    /** Stops it and keeps what it has reached. */
    stop(): void;
    /** Stops it at once: another worker may have the run, so nothing more may be written. */
    markLost(): void;
  };
  /** Learns whether the inbox of the run may have messages, and while that is looked up. */
  readonly steering: { isHinted: boolean; looking?: Promise<void> | undefined };
  /** Whether another process continues the run if this one releases it. */
  readonly recoverable: () => boolean;
}

/** The runs that this process works on: keeps their claims alive, and passes on what others ask of them. */
export interface LiveRuns {
  add(run: LiveRun): () => void;
  list(): readonly LiveRun[];
  /** Renews all claims now, including expired ones that no other worker has taken. */
  beat(): Promise<void>;
}

interface Entry {
  /** Cleared when the run is over: a removed entry of a set stays in the heap for a while, and holds a whole turn. */
  run: LiveRun | undefined;
  lastSeen: number;
  /** The store could not be asked: it is asked again with the next tick, not whenever it tells of a change. */
  isStoreAway: boolean;
}

export function createLiveRuns(options: { readonly clock: Clock; readonly ttl: number }): LiveRuns {
  const { clock, ttl } = options;
  const entries = new Set<Entry>();
  let stopTicking: (() => void) | undefined;

  const beat = async (entry: Entry): Promise<void> => {
    const { run } = entry;
    if (run === undefined) return;
    try {
      const signal = await run.store.runs?.heartbeat(run.ref);
      entry.isStoreAway = false;
      if (entry.run === undefined) return;
      entry.lastSeen = clock.now();
      if (signal === 'stop') run.control.stop();
      else if (signal === 'lost') run.control.markLost();
      else if (signal === 'steered') run.steering.isHinted = true;
    } catch {
      entry.isStoreAway = true;
      // The store may come back, but once the claim must have expired, another worker may have the run.
      if (clock.now() - entry.lastSeen > ttl) run.control.markLost();
    }
  };
  const beatAll = async (): Promise<void> => {
    await Promise.all([...entries].map(beat));
  };
  // Ends by itself when there was nothing to do for a while: a timer for each turn would cost more than its claim.
  const tick = (): void => {
    if (entries.size > 0) void beatAll();
    else {
      stopTicking?.();
      stopTicking = undefined;
    }
  };

  return {
    add(run) {
      const entry: Entry = { run, lastSeen: clock.now(), isStoreAway: false };
      entries.add(entry);
      stopTicking ??= clock.every(Math.max(10, ttl / 3), tick);
      const unlisten = run.store.abort?.onChange(run.ref.runId, () => {
        // A failing store may reload its data and report that as a change.
        if (entry.isStoreAway) return;
        const looking = beat(entry).finally(() => {
          if (run.steering.looking === looking) run.steering.looking = undefined;
        });
        run.steering.looking = looking;
      });
      return () => {
        unlisten?.();
        entries.delete(entry);
        entry.run = undefined;
      };
    },
    list: () => [...entries].flatMap(({ run }) => run ?? []),
    beat: beatAll,
  };
}
