import type { Agent } from '../agent/agent.ts';
import type { Dispatcher } from '../agent/dispatcher.ts';
import type { AgentHost } from '../agent/spec.ts';

/** The app that an engine works for. */
export interface EngineEnv {
  readonly host: AgentHost;
  readonly agents: () => readonly Agent[];
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
 * checkpoints, its events. An engine only brings runs to workers: it takes them over from the store (`runs.takeOver`) and
 * goes on with them (`resumeRun`). What it forgets or brings twice does no harm, because every write names its attempt.
 */
export interface Engine {
  /** Shown in status and logs. */
  readonly name: string;
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
