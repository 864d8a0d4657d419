import type { Json } from '../../core/json/json.ts';
import type { RunRef } from './run.ts';
import type { Scope } from './snapshot-store.ts';

/** A call that had an effect in another system, and that can be undone. */
export interface Effect {
  /** The idempotency key of the call, SHA-256 in lower-case hex. */
  readonly key: string;
  /** The tool, or the name of the undo function of a step. */
  readonly tool: string;
  /** The sub-agent that made the call; absent for the agent of the session. */
  readonly agent?: string;
  /** The input that the call ran with. */
  readonly input: Json;
  /** The result in a list of one; absent while it is not known. */
  readonly output?: readonly [Json];
  /** When the call began, as ISO 8601. */
  readonly at: string;
}

/** An effect as a session has it. */
export interface StoredEffect extends Effect {
  /** The run that made the call. */
  readonly runId: string;
  /** When it was undone, as ISO 8601. */
  readonly undoneAt?: string;
  /** Other sessions that have the same call, because they were forked after it. */
  readonly sharedWith: readonly string[];
}

/**
 * Effects of calls that can be undone. They are kept outside of the snapshots: a failed turn and a restore do not change them. A fork has
 * those of its source. They are deleted with the session.
 */
export interface EffectSupport {
  /** Records a call of the run's session, or replaces its record; `null` removes it. A stale attempt is `ABORTED`. */
  save(run: RunRef, key: string, effect: Effect | null): Promise<void>;
  /** The effects of a session, oldest first. */
  list(scope: Scope, sessionId: string): Promise<readonly StoredEffect[]>;
  /** Marks a call as undone in all sessions that have it, and counts as progress of the run. A stale attempt is `ABORTED`. */
  markUndone(run: RunRef, key: string): Promise<void>;
}
