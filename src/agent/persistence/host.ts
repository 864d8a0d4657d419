import { lifelongController } from '../../core/async/signal.ts';
import { messageOf, WaymarkError } from '../../core/error.ts';
import { count } from '../../core/metrics.ts';
import { type Clock, waitAtMost } from '../../core/time.ts';
import { attributes as names } from '../../core/trace-names.ts';
import type { Tool } from '../../generate/tool/tool.ts';
import type { RunRef, Scope, StateBase } from '../../store/contract/store.ts';
import type { Dispatcher } from '../contract/dispatcher.ts';
import {
  createErrorReports,
  type ErrorInfo,
  type ErrorListener,
  type ErrorReports,
} from '../contract/error-reports.ts';
import {
  type Logger,
  type TelemetryOptions,
  telemetryOptions,
  writeLog,
} from '../contract/observability.ts';
import type { AgentSpec, AgentStore, InterruptEvent } from '../contract/spec.ts';
import { createEventLogs, type EventLogs } from './event-log.ts';

/** The environment that the agents of one app share. */
export interface AgentHost {
  readonly clock: Clock;
  readonly newId: () => string;
  /** Names this process in claims. */
  readonly worker: string;
  /** Milliseconds without a heartbeat after which a claim has expired. */
  readonly ttl: number;
  readonly cache: SessionCache;
  readonly live: LiveRuns;
  readonly logs: EventLogs;
  /** Where runs go that are detached from their start. */
  readonly dispatcher?: Dispatcher | undefined;
  readonly telemetry: TelemetryOptions;
  readonly logger?: Logger | undefined;
  /** Aborts when the app begins to close: connections take no more inputs. */
  readonly closing: AbortSignal;
  checkOpen(): void;
  report(error: unknown, info: ErrorInfo): void;
  readonly onInterrupt?: ((event: InterruptEvent) => void | Promise<void>) | undefined;
  /** Finds what a stored effect names. */
  readonly find: DefinitionFinder;
  /** Keeps `close` from finishing before this background work has. */
  background(work: Promise<unknown>): void;
}

/** The definitions of an app, by name. */
interface DefinitionFinder {
  agent(name: string): AgentSpec | undefined;
  tool(name: string): Promise<Tool | undefined>;
}

/** Options of an app for its agents' host; `AppOptions` explains them. */
interface HostOptions {
  readonly claimTtl?: number | undefined;
  readonly cacheSize?: number | undefined;
  readonly dispatcher?: AgentHost['dispatcher'] | undefined;
  readonly logger?: Logger | undefined;
  readonly telemetry?: TelemetryOptions | undefined;
  readonly onError?: ErrorListener | undefined;
  readonly onInterrupt?: ((event: InterruptEvent) => void | Promise<void>) | undefined;
}

interface AppHost {
  readonly host: AgentHost;
  readonly subscribeToErrors: ErrorReports['subscribe'];
  readonly closed: boolean;
  /** Takes no new turns, waits for those under way, and hands over or stops the rest. */
  drain(grace: number): Promise<void>;
}

export function createHost(
  options: HostOptions,
  { clock, newId, find }: Pick<AgentHost, 'clock' | 'newId' | 'find'>,
): AppHost {
  const { claimTtl: ttl = 5_000, cacheSize = 256, dispatcher, logger, onError } = options;
  const work = new Set<Promise<unknown>>();
  const live = createLiveRuns({ clock, ttl });
  const closing = lifelongController();
  let worker: string | undefined;
  const reports = createErrorReports(logger === undefined ? onError : logged(logger, onError));
  const host: AgentHost = {
    clock,
    newId,
    // On first use: Workers have no random bytes while a module is loaded.
    get worker() {
      worker ??= newId();
      return worker;
    },
    ttl,
    cache: createSessionCache(cacheSize),
    live,
    logs: createEventLogs(clock),
    telemetry: telemetryOptions(options.telemetry),
    logger,
    dispatcher,
    closing: closing.signal,
    checkOpen() {
      if (closing.signal.aborted)
        throw new WaymarkError('UNAVAILABLE', 'The app is closing and takes no new turns.');
    },
    background(promise) {
      work.add(promise);
      const end = (): void => void work.delete(promise);
      promise.then(end, end);
    },
    report(error, info) {
      const { phase, agent } = info;
      count('waymark.failures', 1, { 'waymark.phase': phase, [names.agent]: agent });
      reports.report(error, info);
    },
    onInterrupt: options.onInterrupt,
    find,
  };
  const finished = async (): Promise<void> => {
    while (work.size > 0) await Promise.allSettled(work);
  };
  const idle = (ms: number): Promise<void> => waitAtMost(clock, ms, finished());
  return {
    host,
    subscribeToErrors: reports.subscribe,
    get closed() {
      return closing.signal.aborted;
    },
    async drain(grace) {
      closing.abort();
      await idle(grace);
      const letGo = live.list().map(async ({ ref, store, control, recoverable }) => {
        if (!recoverable()) return control.stop();
        // First of all it is free for others; what is still written here names its attempt.
        await store.runs?.handOver(ref).catch(() => {});
        control.markLost();
      });
      await Promise.all(letGo);
      await idle(1_000);
    },
  };
}

function logged(logger: Logger, onError: ErrorListener | undefined): ErrorListener {
  return (error, info) => {
    const message = `${info.phase} failed: ${messageOf(error)}`;
    writeLog(logger, 'error', { ...info, err: error }, message);
    onError?.(error, info);
  };
}

interface LiveRun {
  readonly ref: RunRef;
  readonly store: Pick<AgentStore, 'runs' | 'abort'>;
  readonly control: {
    /** Stops it and keeps the partial answer. */
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
interface LiveRuns {
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

/** A state that was just saved, and the last one on its way that is a snapshot, if there is one. */
export interface CachedState {
  readonly base: StateBase;
  readonly listed: StateBase | undefined;
}

/**
 * The states of recently used sessions. An entry is right when its snapshot is still the one that a claim says to continue from, so
 * it needs no invalidation, and it is right across processes.
 */
interface SessionCache {
  get(scope: Scope, sessionId: string): CachedState | undefined;
  set(scope: Scope, sessionId: string, state: CachedState): void;
  delete(scope: Scope, sessionId: string): void;
}

/** A cache that forgets what was used least recently. */
export function createSessionCache(size: number): SessionCache {
  const entries = new Map<string, CachedState>();
  const keyOf = ({ owner = '', agent }: Scope, sessionId: string): string =>
    `${agent}\0${sessionId}\0${owner}`;
  return {
    get(scope, sessionId) {
      const key = keyOf(scope, sessionId);
      const state = entries.get(key);
      if (state !== undefined) {
        entries.delete(key);
        entries.set(key, state);
      }
      return state;
    },
    set(scope, sessionId, state) {
      const key = keyOf(scope, sessionId);
      entries.delete(key);
      entries.set(key, state);
      if (entries.size > size) {
        const [oldest = ''] = entries.keys();
        entries.delete(oldest);
      }
    },
    delete(scope, sessionId) {
      entries.delete(keyOf(scope, sessionId));
    },
  };
}
