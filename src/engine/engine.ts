import type { Agent } from '../agent/spec/agent.ts';
import type { Dispatcher } from '../agent/spec/dispatcher.ts';
import type { ErrorInfo } from '../agent/spec/error-reports.ts';
import type { WaymarkError } from '../core/error.ts';
import type { Clock } from '../core/time/clock.ts';
import type { DeadRun } from '../protocol/run.ts';
import type { RunRecord, Scope } from '../store/contract/store.ts';
import type { Recovery } from './recovery.ts';

/** An agent of the app that an engine works for. */
export interface EngineAgent {
  readonly agent: Agent;
  readonly version?: string;
}

/** Which runs to take over. */
export interface ClaimRuns {
  /** Their ids, as the engine was given them by its {@link Dispatcher}. */
  readonly runIds: readonly string[];
  /** The name they wait under: the `worker` of the `HandOver` that let go of them. */
  readonly waitingAs: string;
  /** Names whoever works on them, so that recovery can tell them from others. */
  readonly worker: string;
}

/** A run that this process has taken over. Whatever is written from now on names its attempt. */
export interface ClaimedRun {
  readonly run: RunRecord;
  readonly agent: Agent;
  /**
   * Works on it. Resolves when it has `ended`, or when this process has `left` it to somebody else. With `failure` nothing
   * more is done: it ends as a failed one. A run whose process has died too often is given up.
   */
  goOn(options?: { readonly failure?: WaymarkError }): Promise<'ended' | 'left'>;
}

/** A run of the dead-letter list: it was given up because its process died too often without progress. */
export interface DeadLetter extends Omit<DeadRun, 'snapshotId'> {
  readonly runId: string;
  readonly owner?: string;
}

/** What an engine sees of the app that it works for: all that it needs to bring runs to agents. */
export interface EngineEnv {
  readonly clock: Clock;
  /** Names this process. */
  readonly worker: string;
  /** The agents as they are defined now. */
  agents(): readonly EngineAgent[];
  /**
   * Takes runs over; those that are over, or somebody else's, or of agents that are not here, are left out. Of runs whose
   * process has died, only one at a time is taken: ask again for the others.
   */
  claim(request: ClaimRuns): Promise<readonly ClaimedRun[]>;
  /** Whether a run has not ended, whoever has it. */
  isOpen(scope: Scope, runId: string): Promise<boolean>;
  /** Calls back soon after any process handed a run over. A hint: it may be late, or lost. Returns the way to stop. */
  onHandedOver(listener: () => void): () => void;
  /** The search for runs that have no place in a queue: turns that a server accepted, and runs detached in their midst. */
  recovery(options?: {
    /** Leaves runs alone whose worker's name begins with this. */
    readonly exceptWorker?: string;
    /** Only runs of these agents. @default all */
    readonly agents?: () => readonly Agent[];
  }): Recovery;
  /** The dead-letter list of all agents and owners, oldest first. */
  deadLetters(): Promise<readonly DeadLetter[]>;
  /** Starts a run of the dead-letter list again, as a new run; resolves to its id. */
  retry(runId: string): Promise<string>;
  /** How many runs and turns this process works on. */
  running(): number;
  /** Keeps `app.close` from finishing before this work has. */
  background(work: Promise<unknown>): void;
  /** Tells the app's `onError`. */
  report(error: unknown, about?: Pick<ErrorInfo, 'agent' | 'sessionId' | 'runId'>): void;
}

/** What a process works on; takes the place of what the engine was made with. */
export interface WorkOptions {
  /** Runs at a time. */
  readonly slots?: number;
  /** Only runs of these agents. */
  readonly agents?: readonly string[];
}

/** How much there is to do, for health checks and metrics. */
export interface EngineStatus {
  readonly engine: string;
  /** Runs of this process. */
  readonly running: number;
  /** Runs that wait for a worker, and for how long the oldest has. */
  readonly waiting?: number;
  readonly oldestMs?: number;
}

/**
 * Where runs without a caller are worked on. The truth about a run is in the store: its claim, its attempt, its
 * checkpoints, its events. An engine only brings runs to workers. Its `dispatcher` lets go of a run as it is accepted, in
 * the step that records it (*dispatch*); a worker takes it over by its id and goes on with it (*claim*); what the run says
 * goes to whoever watches it through the store, which also tells workers that there is something to do (*events*). What an
 * engine forgets or brings twice does no harm, because every write names its attempt.
 */
export interface Engine {
  /** Shown in status and logs. */
  readonly name: string;
  /** Times that the process of a run may die without progress before the run is given up. @default 3 */
  readonly attempts?: number;
  /** Where runs go that are detached from their start; without one they stay where they were accepted. */
  readonly dispatcher?: Dispatcher;
  /** Called once, by the app that it is given to. */
  attach(env: EngineEnv): void;
  /** Connects to whatever it needs; called by `app.ready()`, and by itself when it is needed sooner. */
  open?(): Promise<void>;
  /** Looks for runs to work on, now and from then on. */
  start(options?: WorkOptions): void;
  /** Looks no more; what is being worked on goes on. */
  stop(): void;
  /** Looks once for runs that somebody has let go of; resolves to how many were taken over. */
  recover(): Promise<number>;
  status(): Promise<EngineStatus>;
  /** Lets go of everything; what has not ended goes to others. Called after {@link Engine.stop}, when the app has drained. */
  close?(): Promise<void>;
}

/** What an engine throws that has not been given to an app. */
export function notAttached(): TypeError {
  return new TypeError('This engine belongs to no app yet: give it to waymark({ engine }).');
}
