import type { Chunk } from '../../protocol/turn.ts';
import type { RunRef } from './run.ts';
import type { Scope } from './snapshot-store.ts';

/** The place of an event of a run, after which a reader continues. */
export interface EventCursor {
  /** The attempt of the run. */
  readonly attempt: number;
  /** The number of the event in its attempt. */
  readonly seq: number;
}

/** One event of a run. */
export interface RunEvent extends EventCursor {
  /** The chunk. */
  readonly chunk: Chunk;
}

/** Events of detached and accepted runs, kept until shortly after the end. */
export interface EventSupport {
  /** Appends events in order; refused (`ABORTED`) when the attempt is no longer current or the run is over. */
  append(run: RunRef, events: readonly RunEvent[]): Promise<void>;
  /**
   * Events after the cursor, in order of (attempt, seq), at most `limit`. `ended`: the run is over and these are the last.
   * `undefined` when nothing is known of the run (never was, or its events have been dropped).
   */
  read(
    scope: Scope,
    runId: string,
    options: { readonly after?: EventCursor; readonly limit: number },
  ): Promise<{ readonly events: readonly RunEvent[]; readonly ended: boolean } | undefined>;
  /** Calls back soon after events were appended or the run ended, from any process. A hint: read again. */
  onEvents(runId: string, listener: () => void): () => void;
}
