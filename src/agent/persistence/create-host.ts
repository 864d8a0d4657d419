import { lifelongController } from '../../core/async/signal.ts';
import { messageOf, WaymarkError } from '../../core/error.ts';
import type { NewId } from '../../core/id.ts';
import { count } from '../../core/metrics.ts';
import type { Clock } from '../../core/time/clock.ts';
import { waitAtMost } from '../../core/time/timers.ts';
import { attributes as names } from '../../core/trace-names.ts';
import {
  createErrorReports,
  type ErrorListener,
  type ErrorReports,
} from '../spec/error-reports.ts';
import type { InterruptEvent } from '../spec/interrupt-event.ts';
import { type Logger, writeLog } from '../spec/logger.ts';
import { type TelemetryOptions, telemetryOptions } from '../spec/telemetry.ts';
import { createEventLogs } from './event-logs.ts';
import type { AgentHost } from './host.ts';
import { createLiveRuns } from './live-runs.ts';
import { createSessionCache } from './session-cache.ts';

/** What an app's options say about its agents' host. `AppOptions` explains them. */
export interface HostOptions {
  readonly claimTtl?: number | undefined;
  readonly cacheSize?: number | undefined;
  readonly dispatcher?: AgentHost['dispatcher'] | undefined;
  readonly logger?: Logger | undefined;
  readonly telemetry?: TelemetryOptions | undefined;
  readonly onError?: ErrorListener | undefined;
  readonly onInterrupt?: ((event: InterruptEvent) => void | Promise<void>) | undefined;
}

/** The host of an app's agents, and how its work ends. */
export interface AppHost {
  readonly host: AgentHost;
  readonly subscribeToErrors: ErrorReports['subscribe'];
  readonly closed: boolean;
  /** Takes no new turns, waits for those under way, and hands over or stops the rest. */
  drain(grace: number): Promise<void>;
}

/** What is under way in an app, and how it ends. */
export function createHost(
  options: HostOptions,
  { clock, newId }: { readonly clock: Clock; readonly newId: NewId },
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
    ...(logger && { logger }),
    ...(dispatcher && { dispatcher }),
    closing: closing.signal,
    checkOpen() {
      if (closing.signal.aborted)
        throw new WaymarkError('UNAVAILABLE', 'The app is closing and takes no new turns.');
    },
    background(promise) {
      const settled = promise.catch(() => {}).finally(() => work.delete(settled));
      work.add(settled);
    },
    report(error, info) {
      const { phase, agent } = info;
      count('waymark.failures', 1, { 'waymark.phase': phase, [names.agent]: agent });
      reports.report(error, info);
    },
    onInterrupt: options.onInterrupt,
  };
  const finished = async (): Promise<void> => {
    while (work.size > 0) await Promise.all(work);
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

/** Logs failures, and passes them on. */
function logged(logger: Logger, onError: ErrorListener | undefined): ErrorListener {
  return (error, info) => {
    const message = `${info.phase} failed: ${messageOf(error)}`;
    writeLog(logger, 'error', { ...info, err: error }, message);
    onError?.(error, info);
  };
}
