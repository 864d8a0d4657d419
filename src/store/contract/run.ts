import type { JsonObject } from '../../core/json/json.ts';
import type { RunMode } from '../../protocol/run.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { Init, Input } from '../../protocol/turn.ts';
import type { Scope } from './scope.ts';

/** A run under one attempt. Every write names it, and is refused (`ABORTED`) when the attempt is no longer current. */
export interface RunRef {
  /** The reserved snapshot id. */
  readonly runId: string;
  /** The attempt number, a fencing token. */
  readonly attempt: number;
}

/** What is needed to start a run over, in this or another process. */
export interface RunRequest {
  /** Whether a caller waits for it. */
  readonly mode: RunMode;
  /** What it starts from. */
  readonly init?: Init;
  /** The inputs, in order. */
  readonly inputs: readonly Input[];
  /** The caller's context as JSON. */
  readonly context?: JsonObject;
  /** The version of the agent that accepted it. */
  readonly version?: string;
  /** What the run leaves in its inbox stays for the session's next run that keeps its inbox. @default false */
  readonly keepInbox?: boolean;
}

/** A run as it stands, for taking it over and for showing it. */
export interface RunRecord extends RunRef, RunRequest {
  /** The agent and the owner. */
  readonly scope: Scope;
  /** The session. */
  readonly sessionId: string;
  /** The worker that holds the claim. */
  readonly worker: string;
  /** The snapshot that the run started from. */
  readonly parentId?: string;
  /** When the run was accepted, as ISO 8601. */
  readonly createdAt: string;
  /** The last heartbeat, as ISO 8601. */
  readonly heartbeatAt: string;
  /** No heartbeat for longer than its ttl. */
  readonly expired: boolean;
  /** An abort was requested. */
  readonly stopping: boolean;
  /** How many of `inputs` the last checkpoint has behind it. */
  readonly inputsDone: number;
  /** The last checkpoint lies within the turn of the next input, after a tool iteration, not before it. */
  readonly midTurn: boolean;
  /** Its inbox has messages. */
  readonly steered?: true;
  /** Workers that died with the run since its last progress (a checkpoint or a durable step), oldest first. */
  readonly crashes?: readonly RunCrash[];
}

/** A worker that died, or lost its connection, while it held a run. */
export interface RunCrash {
  /** The attempt that crashed. */
  readonly attempt: number;
  /** Its last heartbeat, as ISO 8601. */
  readonly lastSeenAt: string;
}

/** A run that was given up: what is needed to start it again. It is deleted with its snapshot. */
export interface DeadRunRecord extends RunRequest {
  /** The id of the run. */
  readonly runId: string;
  /** The agent and the owner. */
  readonly scope: Scope;
  /** The session. */
  readonly sessionId: string;
  /** Number of inputs that were processed. */
  readonly inputsDone: number;
  /** When it was given up, as ISO 8601. */
  readonly since: string;
  /** The error of its failed snapshot. */
  readonly error?: NonNullable<Snapshot['error']>;
}

/**
 * The answer to a heartbeat: continue, continue and read the inbox, stop gracefully, or stop at once because another worker
 * has the run.
 */
export type RunSignal = 'held' | 'steered' | 'stop' | 'lost';
