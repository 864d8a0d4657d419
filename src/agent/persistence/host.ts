import type { NewId } from '../../core/id.ts';
import type { Clock } from '../../core/time/clock.ts';
import type { Dispatcher } from '../spec/dispatcher.ts';
import type { ErrorInfo } from '../spec/error-reports.ts';
import type { InterruptEvent } from '../spec/interrupt-event.ts';
import type { Logger } from '../spec/logger.ts';
import type { TelemetryOptions } from '../spec/telemetry.ts';
import type { EventLogs } from './event-logs.ts';
import type { LiveRuns } from './live-runs.ts';
import type { SessionCache } from './session-cache.ts';

/** What agents of one app share. */
export interface AgentHost {
  readonly clock: Clock;
  readonly newId: NewId;
  /** Names this process in claims. */
  readonly worker: string;
  /** Milliseconds without a heartbeat after which a claim has expired. */
  readonly ttl: number;
  readonly cache: SessionCache;
  readonly live: LiveRuns;
  readonly logs: EventLogs;
  /** Where runs go that are detached from their start. */
  readonly dispatcher?: Dispatcher;
  /** What traces may contain, besides ids and counts. */
  readonly telemetry: TelemetryOptions;
  readonly logger?: Logger;
  /** Aborts when the app begins to close: connections take no more inputs. */
  readonly closing: AbortSignal;
  /** Throws when the app takes no new work. */
  checkOpen(): void;
  /** Tells the owner of the process what failed. */
  report(error: unknown, info: ErrorInfo): void;
  /** Called with turns that wait for the answer of a person. */
  readonly onInterrupt?: ((event: InterruptEvent) => void | Promise<void>) | undefined;
  /** Keeps `close` from finishing before this background work has. */
  background(work: Promise<unknown>): void;
}
