import type { SpanRecord, SpanSink } from '../../core/span-sink.ts';
import type { Clock } from '../../core/time/clock.ts';
import { attributes as names } from '../../core/trace-names.ts';

/** A span with its times, in milliseconds since the epoch; without an end it still runs. */
export interface TimedSpan extends SpanRecord {
  readonly startedAt: number;
  readonly endedAt?: number;
}

/** The latest spans of this process. */
export interface SpanRecorder extends SpanSink {
  /** The spans of every trace in which this session was worked on, oldest first. */
  ofSession(sessionId: string): readonly TimedSpan[];
}

interface Kept {
  readonly span: SpanRecord;
  readonly startedAt: number;
  endedAt?: number;
}

/** Keeps spans in memory; when there are too many the oldest go. */
export function createSpanRecorder({
  clock,
  most = 5_000,
}: {
  readonly clock: Clock;
  /** @default 5000 */
  readonly most?: number;
}): SpanRecorder {
  const kept = new Map<string, Kept>();
  return {
    started(span) {
      kept.set(span.spanId, { span, startedAt: clock.now() });
      const [oldest] = kept.size > most ? kept.keys() : [];
      if (oldest !== undefined) kept.delete(oldest);
    },
    ended({ spanId }) {
      const found = kept.get(spanId);
      if (found) found.endedAt = clock.now();
    },
    ofSession(sessionId) {
      const all = [...kept.values()];
      const traces = new Set(
        all
          .filter(({ span }) => span.attributes[names.sessionId] === sessionId)
          .map(({ span }) => span.traceId),
      );
      return all
        .filter(({ span }) => traces.has(span.traceId))
        .map(({ span, ...times }) => ({ ...span, ...times }));
    },
  };
}
