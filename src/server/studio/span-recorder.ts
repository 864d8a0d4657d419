import type { Clock } from '../../core/time/clock.ts';
import type { SpanRecord, SpanSink } from '../../core/trace.ts';
import { genAi, attributes as names } from '../../core/trace-names.ts';
import { type RecordedTurn, recordedTurns } from './recorded-turns.ts';
import { isModelCall, type SpanFacts, toStored } from './span-facts.ts';

/** A span with its times, in milliseconds since the epoch; without an end it still runs. */
export interface TimedSpan extends Omit<SpanRecord, 'content'> {
  readonly startedAt: number;
  readonly endedAt?: number;
  /** Whether `contentOf` has what the call sent and received. */
  readonly hasContent?: true;
}

/** A span as it is kept: its content is JSON text. */
export interface KeptSpan {
  readonly span: Omit<SpanRecord, 'content'>;
  readonly startedAt: number;
  readonly endedAt?: number;
  readonly content?: string;
  /** What lists show of its content. */
  readonly facts?: SpanFacts;
}

/** Where kept spans are stored, too. */
export interface SpanLog {
  /** Stores a span as it is now. A later call with the same id replaces it; `all` are the spans that still count. */
  append(kept: KeptSpan, all: Iterable<KeptSpan>): void;
  /** Stores only these spans. */
  replace(all: Iterable<KeptSpan>): void;
}

/** A session that spans belong to. */
export interface RecordedSession {
  readonly sessionId: string;
  readonly agent: string | undefined;
  readonly owner: string | undefined;
}

/** The latest spans of this process. */
export interface SpanRecorder extends SpanSink {
  /** The spans of every trace in which this session of the owner was worked on, oldest first. */
  ofSession(sessionId: string, owner: string | undefined): readonly TimedSpan[];
  /** The turns of all sessions, oldest first. */
  turns(): readonly RecordedTurn[];
  /** What a model call of this session sent and received, or the input of a turn, as JSON. */
  contentOf(sessionId: string, owner: string | undefined, spanId: string): string | undefined;
  /** The sessions of all spans. */
  sessions(): readonly RecordedSession[];
  sessionDeleted(sessionId: string): void;
  /** Drops the spans of an earlier process in which one of these sessions was worked on. */
  dropRestored(sessionIds: ReadonlySet<string>): void;
}

/** Keeps spans in memory. When there are too many, or their content is too large, the oldest are dropped. */
export function createSpanRecorder({
  clock,
  log,
  restored = [],
  most = 5_000,
  mostContent = 32_000_000,
}: {
  readonly clock: Clock;
  /** Stores the spans beyond this process. */
  readonly log?: SpanLog;
  /** The spans of an earlier process, oldest first. */
  readonly restored?: readonly KeptSpan[];
  /** @default 5000 */
  readonly most?: number;
  /** In characters of all spans together. @default 32000000 */
  readonly mostContent?: number;
}): SpanRecorder {
  const kept = new Map<string, KeptSpan>();
  // Spans that have not ended: their attributes and content still change.
  const open = new Map<string, SpanRecord>();
  let contentLength = 0;
  const remove = (spanId: string): void => {
    contentLength -= kept.get(spanId)?.content?.length ?? 0;
    kept.delete(spanId);
    open.delete(spanId);
  };
  const keep = (span: KeptSpan): void => {
    const before = kept.get(span.span.spanId)?.content?.length ?? 0;
    contentLength += (span.content?.length ?? 0) - before;
    kept.set(span.span.spanId, span);
    while (kept.size > most || contentLength > mostContent) {
      const [oldest] = kept.keys();
      if (oldest === undefined || oldest === span.span.spanId) break;
      remove(oldest);
    }
  };
  for (const span of restored) keep(span);
  const restoredTraces = new Set(restored.map(({ span }) => span.traceId));

  const tracesOf = (...sessionIds: readonly string[]): Set<string> => {
    const ids = new Set<unknown>(sessionIds);
    return new Set(
      [...kept.values()]
        .filter(({ span }) => ids.has(span.attributes[names.sessionId]))
        .map(({ span }) => span.traceId),
    );
  };
  // Two owners may have sessions of the same id.
  const tracesOfOwner = (sessionId: string, owner: string | undefined): Set<string> =>
    new Set(
      [...kept.values()]
        .filter(({ span }) => span.attributes[names.sessionId] === sessionId)
        .filter(({ span }) => span.owner === owner)
        .map(({ span }) => span.traceId),
    );
  const removeTraces = (traces: ReadonlySet<string>): void => {
    if (traces.size === 0) return;
    for (const [spanId, { span }] of kept) if (traces.has(span.traceId)) remove(spanId);
    log?.replace(kept.values());
  };
  return {
    started(record) {
      const { content: _, ...span } = record;
      open.set(record.spanId, record);
      const started = { span, startedAt: clock.now() };
      keep(started);
      log?.append(started, kept.values());
    },
    ended({ content, ...span }) {
      const found = kept.get(span.spanId);
      open.delete(span.spanId);
      if (!found) return;
      const ended = {
        span,
        startedAt: found.startedAt,
        endedAt: clock.now(),
        ...toStored(span, content),
      };
      keep(ended);
      log?.append(ended, kept.values());
    },
    ofSession(sessionId, owner) {
      const traces = tracesOfOwner(sessionId, owner);
      return [...kept.values()]
        .filter(({ span }) => traces.has(span.traceId))
        .map(({ span, content, facts: _, ...times }) => {
          const { content: live, ...now } = open.get(span.spanId) ?? { ...span, content };
          const hasContent = live !== undefined && isModelCall(span);
          return { ...now, ...times, ...(hasContent && { hasContent: true as const }) };
        });
    },
    turns() {
      const now = [...kept.values()].map((each) => {
        const live = open.get(each.span.spanId);
        return live ? { ...each, span: live, facts: toStored(live, live.content).facts } : each;
      });
      return recordedTurns(now);
    },
    contentOf(sessionId, owner, spanId) {
      const found = kept.get(spanId);
      if (!found || !tracesOfOwner(sessionId, owner).has(found.span.traceId)) return undefined;
      const live = open.get(spanId);
      return live ? toStored(live, live.content).content : found.content;
    },
    sessions() {
      const found = new Map<string, RecordedSession>();
      for (const { span } of kept.values()) {
        const { [names.sessionId]: sessionId, [genAi.agentName]: name } = span.attributes;
        if (typeof sessionId !== 'string') continue;
        const agent = typeof name === 'string' ? name : undefined;
        const { owner } = span;
        const key = JSON.stringify([sessionId, agent, owner]);
        if (!found.has(key)) found.set(key, { sessionId, agent, owner });
      }
      return [...found.values()];
    },
    sessionDeleted: (sessionId) => removeTraces(tracesOf(sessionId)),
    dropRestored(sessionIds) {
      const traces = [...tracesOf(...sessionIds)];
      removeTraces(new Set(traces.filter((traceId) => restoredTraces.has(traceId))));
    },
  };
}
