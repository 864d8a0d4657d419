import type { Json, JsonObject } from '../../core/json/json.ts';
import type { Message } from '../../protocol/message.ts';
import type { RunMode } from '../../protocol/run.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { Init, Input } from '../../protocol/turn.ts';
import type { Scope } from './snapshot-store.ts';

/** A run under one attempt. Every write names it, and is refused (`ABORTED`) when the attempt is no longer current. */
export interface RunRef {
  /** The reserved snapshot id. */
  readonly runId: string;
  /** The attempt number, a fencing token. */
  readonly attempt: number;
}

/** The data that starts a run over, in this or another process. */
export interface RunRequest {
  /** Whether a caller waits for it. */
  readonly mode: RunMode;
  /** The state that it starts from. */
  readonly init?: Init;
  /** The inputs, in order. */
  readonly inputs: readonly Input[];
  /** The caller's context as JSON. */
  readonly context?: JsonObject;
  /** The version of the agent that accepted it. */
  readonly version?: string;
  /** Keeps messages that the run leaves in its inbox for the session's next run that keeps its inbox. @default false */
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

/** How long a request id is remembered after the end of its run, in milliseconds: 24 hours. */
export const requestTtl = 86_400_000;

/** An idempotency key that a run is claimed under. Both are SHA-256 in lower-case hex. */
export interface RequestMark {
  /** A hash of owner, agent and the caller's request id; unique in the store. */
  readonly key: string;
  /** A hash of the request, to tell a retry from another request under the same id. */
  readonly digest: string;
}

/** A request that the store knows. */
export interface RequestRecord {
  /** The id of the run. */
  readonly runId: string;
  /** The session. */
  readonly sessionId: string;
  /** The result of the run; absent while it is open, and when it ended without its worker. */
  readonly receipt?: Json;
}

/** The result of a run, for repeated requests under its keys. Kept for {@link requestTtl}. */
export interface RequestOutcome {
  /** The idempotency keys that the run answers. */
  readonly keys: readonly string[];
  /** The result that a repeated request gets. */
  readonly receipt: Json;
}

/** A message for a running turn. */
export interface SteeringMessage {
  /** Chosen by the sender: the same id twice is the same message. */
  readonly id: string;
  /** The message to add. */
  readonly message: Message;
  /** The run that it was sent to, if that run has ended without it. @default the run whose inbox has it */
  readonly runId?: string;
}

/** The most messages that the inbox of one run takes, and the most characters of JSON that they may have together. */
export const inboxLimits = { messages: 100, length: 1_000_000 } as const;

/** The id under which `abort.onChange` tells that some run has been handed over as it was detached. */
export const handedOverHint = 'handed-over';

/** A transaction of a store's, for what others keep in the same database. */
export interface Transaction {
  /** Runs one statement inside the transaction. */
  query(text: string, values: readonly unknown[]): Promise<{ readonly rows: unknown[] }>;
}

/** How long a run that waits for a worker reads as `pending`: 24 days. */
export const waitingTtl = 2_147_483_647;

/** The worker that a detached run is handed over to. Such a run does not expire; it waits for a `takeOver` with its id. */
export interface QueueHandoff {
  /** The name of the worker that it waits under. */
  readonly worker: string;
  /**
   * Writes to the same database in the same transaction; may be called again. Runs that are detached at the same time may
   * share a transaction, and are then called together with the same one. Only where `runs.transactional`.
   */
  readonly within?: (transaction: Transaction) => Promise<void>;
}
