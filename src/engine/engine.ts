import type { Agent } from '../agent/contract/agent.ts';
import type { Dispatcher } from '../agent/contract/dispatcher.ts';
import type { ErrorInfo } from '../agent/contract/error-reports.ts';
import type { WaymarkError } from '../core/error.ts';
import type { Clock } from '../core/time.ts';
import type { DeadRun } from '../protocol/run.ts';
import type { RunRecord, Scope } from '../store/contract/store.ts';
import type { Recovery } from './recovery.ts';

/** An agent of the app that an engine works for. */
export interface EngineAgent {
  /** The agent. */
  readonly agent: Agent;
  /** Its version, if it has one. */
  readonly version?: string;
}

/** Which runs to take over. */
interface ClaimRuns {
  /** The ids that the {@link Dispatcher} passed to the engine. */
  readonly runIds: readonly string[];
  /** The worker name of queued runs: the `worker` of the `QueueHandoff` that enqueued them. */
  readonly waitingAs: string;
  /** The worker name to record, so that recovery can tell queued runs from others. */
  readonly worker: string;
}

/** A run that this process has claimed. Every write carries its attempt number as a fencing token. */
export interface ClaimedRun {
  /** The run as it is stored. */
  readonly run: RunRecord;
  /** The agent that executes it. */
  readonly agent: Agent;
  /**
   * Executes the run. Resolves to `ended`, or to `left` when another worker continues it. With `failure` the run is not
   * executed: it ends as failed. A run whose process has died too often is moved to the dead-letter queue.
   */
  execute(options?: { readonly failure?: WaymarkError }): Promise<'ended' | 'left'>;
}

/** A run in the dead-letter queue: its process died too often without progress. */
export interface DeadLetter extends Omit<DeadRun, 'snapshotId'> {
  /** The id of the run. */
  readonly runId: string;
  /** The owner of its session. */
  readonly owner?: string;
}

/** The app as its engine sees it: everything needed to dispatch runs to agents. */
export interface EngineEnv {
  /** The clock of the app. */
  readonly clock: Clock;
  /** Names this process. */
  readonly worker: string;
  /** The agents as they are defined now. */
  agents(): readonly EngineAgent[];
  /**
   * Claims runs. Skips runs that have ended, belong to another worker, or belong to unknown agents. Runs whose process has
   * died are claimed one at a time: call again for the others.
   */
  claim(request: ClaimRuns): Promise<readonly ClaimedRun[]>;
  /** Whether a run has not ended, whichever worker holds it. */
  isOpen(scope: Scope, runId: string): Promise<boolean>;
  /** Calls back soon after any process has enqueued a run. Only a hint: it may be late or lost. Returns an unsubscribe function. */
  onHandedOver(listener: () => void): () => void;
  /** Recovery of runs that are not in a queue: turns that a server accepted, and turns detached while they ran. */
  recovery(options?: {
    /** Skips runs whose worker name starts with this prefix. */
    readonly exceptWorker?: string;
    /** Only runs of these agents. @default all */
    readonly agents?: () => readonly Agent[];
  }): Recovery;
  /** The dead-letter queue of all agents and owners, oldest first. */
  deadLetters(): Promise<readonly DeadLetter[]>;
  /** Retries a dead-lettered run as a new run; resolves to its id. */
  retry(runId: string): Promise<string>;
  /** Number of runs and turns that this process is executing. */
  running(): number;
  /** Makes `app.close` wait for this work. */
  background(work: Promise<unknown>): void;
  /** Calls the app's `onError`. */
  report(error: unknown, about?: Pick<ErrorInfo, 'agent' | 'sessionId' | 'runId'>): void;
}

/** Selects the work of a process; overrides the options of the engine. */
export interface WorkOptions {
  /** Number of concurrent runs. */
  readonly slots?: number;
  /** Only runs of these agents. */
  readonly agents?: readonly string[];
}

/** Queue depth and load, for health checks and metrics. */
interface EngineStatus {
  /** The name of the engine. */
  readonly engine: string;
  /** Runs that this process is executing. */
  readonly running: number;
  /** Number of runs that wait for a worker. */
  readonly waiting?: number;
  /** Milliseconds that the oldest waiting run has waited. */
  readonly oldestMs?: number;
}

/**
 * Executes runs that have no caller. The store is the source of truth: it holds a run's claim, attempt, checkpoints and
 * events. An engine only dispatches runs to workers. Its `dispatcher` enqueues a run in the transaction that records it
 * (*dispatch*); a worker claims it by its id and executes it (*claim*); clients read its output through the store, which
 * also notifies workers of new work (*events*). Dispatch may be lossy or duplicated, because every write is fenced by the
 * attempt number.
 */
export interface Engine {
  /** Shown in status and logs. */
  readonly name: string;
  /** How often the process of a run may die without progress before the run moves to the dead-letter queue. @default 3 */
  readonly attempts?: number;
  /** Dispatches runs that are detached from their start. Without it they run in the process that accepted them. */
  readonly dispatcher?: Dispatcher;
  /** Called once, by the app that uses this engine. */
  attach(env: EngineEnv): void;
  /** Opens connections. Called by `app.ready()`, or by the engine itself when it needs them earlier. */
  open?(): Promise<void>;
  /** Starts polling for runs. */
  start(options?: WorkOptions): void;
  /** Stops polling; runs that are executing continue. */
  stop(): void;
  /** Polls once for abandoned runs; resolves to the number taken over. */
  recover(): Promise<number>;
  /** The load of the engine, for health checks and metrics. */
  status(): Promise<EngineStatus>;
  /** Releases all resources, and returns unfinished runs to the queue. Called after {@link Engine.stop}, when the app has drained. */
  close?(): Promise<void>;
}

export function notAttached(): TypeError {
  return new TypeError('This engine is not attached to an app. Pass it to waymark({ engine }).');
}
