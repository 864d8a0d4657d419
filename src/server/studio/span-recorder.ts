import { defined } from '../../core/json/json.ts';
import type { Clock } from '../../core/time.ts';
import type { SpanError, SpanRecord, SpanSink } from '../../core/trace.ts';
import { genAi, attributes as names, operations } from '../../core/trace-names.ts';
import type { Cost } from '../../protocol/turn.ts';
import { addUsage } from '../../protocol/usage.ts';
import { isModelCall, isTurn, type SpanFacts, toStored } from './span-facts.ts';

/** A span with its times, in milliseconds since the epoch; without an end it still runs. */
interface TimedSpan extends Omit<SpanRecord, 'content'> {
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
  /** Its content for lists. */
  readonly facts?: SpanFacts | undefined;
}

/** Where kept spans are stored, too. */
export interface SpanLog {
  /** Stores a span as it is now. A later call with the same id replaces it; `all` are the spans that still count. */
  append(kept: KeptSpan, all: Iterable<KeptSpan>): void;
  /** Stores only these spans. */
  replace(all: Iterable<KeptSpan>): void;
}

/** A session that spans belong to. */
interface RecordedSession {
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
  /** The request and answer of a model call of this session, or the input of a turn, as JSON. */
  contentOf(sessionId: string, owner: string | undefined, spanId: string): string | undefined;
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
  maxContent = 32_000_000,
}: {
  readonly clock: Clock;
  /** Stores the spans beyond this process. */
  readonly log?: SpanLog;
  /** The spans of an earlier process, oldest first. */
  readonly restored?: readonly KeptSpan[];
  /** @default 5000 */
  readonly most?: number;
  /** In characters of all spans together. @default 32000000 */
  readonly maxContent?: number;
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
    while (kept.size > most || contentLength > maxContent) {
      const [oldest] = kept.keys();
      if (oldest === undefined || oldest === span.span.spanId) break;
      remove(oldest);
    }
  };
  for (const span of restored) keep(span);
  const restoredTraces = new Set(restored.map(({ span }) => span.traceId));

  const tracesOf = (isMeant: (span: KeptSpan['span']) => boolean): Set<string> => {
    const spans = [...kept.values()].map(({ span }) => span);
    return new Set(spans.filter(isMeant).map(({ traceId }) => traceId));
  };
  // Two owners may have sessions of the same id.
  const tracesOfOwner = (sessionId: string, owner: string | undefined): Set<string> =>
    tracesOf((span) => span.attributes[names.sessionId] === sessionId && span.owner === owner);
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
      const { startedAt } = found;
      const ended = { span, startedAt, endedAt: clock.now(), ...toStored(span, content) };
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
    sessionDeleted: (sessionId) =>
      removeTraces(tracesOf(({ attributes }) => attributes[names.sessionId] === sessionId)),
    dropRestored(sessionIds) {
      const ids: ReadonlySet<unknown> = sessionIds;
      const isMeant = ({ attributes, traceId }: KeptSpan['span']): boolean =>
        ids.has(attributes[names.sessionId]) && restoredTraces.has(traceId);
      removeTraces(tracesOf(isMeant));
    },
  };
}

/** A turn with the figures of its trace. Times are milliseconds since the epoch; without an end it still runs. */
export interface RecordedTurn extends Partial<NonNullable<SpanFacts['turn']>> {
  readonly spanId: string;
  readonly agent: string;
  readonly sessionId: string;
  /** The owner of the session. */
  readonly owner?: string;
  /** For a turn that has saved one. */
  readonly snapshotId?: string;
  /** 0-based. */
  readonly turnIndex: number;
  readonly startedAt: number;
  readonly endedAt?: number;
  /** The models that were called, each once. */
  readonly models: readonly string[];
  readonly modelCalls: number;
  readonly toolCalls: number;
  /** Input and output of all its model calls, those of sub-agents included. */
  readonly tokens: number;
  readonly cost?: Cost;
  readonly error?: SpanError;
}

type SpanWithFacts = Omit<KeptSpan, 'content'>;

/** The turns among spans, with what was done in them, in the order of the spans. */
function recordedTurns(spans: readonly SpanWithFacts[]): readonly RecordedTurn[] {
  const byId = new Map(spans.map(({ span }) => [span.spanId, span]));
  const parentOf = ({ parentId = '' }: SpanWithFacts['span']) => byId.get(parentId);
  const sums = new Map<string, Sum>();
  for (const { span } of spans) if (isTurn(span)) sums.set(span.spanId, new Sum());
  for (const each of spans) {
    // A sub-agent's work counts for the turns that it works for, too.
    for (let at = parentOf(each.span); at; at = parentOf(at)) {
      const sum = sums.get(at.spanId);
      if (sum) count(sum, each);
    }
  }
  return spans.flatMap((each) => {
    const sum = sums.get(each.span.spanId);
    return sum ? [toTurn(each, sum, parentOf(each.span))] : [];
  });
}

/** The steps of a turn. */
class Sum {
  readonly models = new Set<string>();
  modelCalls = 0;
  toolCalls = 0;
  tokens = 0;
  cost: Cost | undefined;
}

function count(sum: Sum, { span, facts }: SpanWithFacts): void {
  const { attributes } = span;
  if (attributes[genAi.operation] === operations.executeTool) sum.toolCalls += 1;
  if (!isModelCall(span)) return;
  sum.modelCalls += 1;
  sum.models.add(span.name.slice(operations.chat.length + 1));
  sum.tokens += numberOf(attributes[genAi.inputTokens]) + numberOf(attributes[genAi.outputTokens]);
  if (facts?.cost) sum.cost = addUsage({ cost: sum.cost ?? {} }, { cost: facts.cost }).cost;
}

function toTurn(
  { span, startedAt, endedAt, facts }: SpanWithFacts,
  { models, cost, ...sum }: Sum,
  invocation: SpanWithFacts['span'] | undefined,
): RecordedTurn {
  const { attributes, error } = span;
  // A failed turn names no snapshot; its invocation names the failed one.
  const snapshotId =
    attributes[names.snapshotId] ?? (error && invocation?.attributes[names.snapshotId]);
  return {
    ...facts?.turn,
    spanId: span.spanId,
    agent: String(attributes[genAi.agentName]),
    sessionId: String(attributes[names.sessionId]),
    turnIndex: numberOf(attributes[names.turnIndex]),
    startedAt,
    ...sum,
    models: [...models],
    ...defined({
      owner: invocation?.owner,
      snapshotId: typeof snapshotId === 'string' ? snapshotId : undefined,
      endedAt,
      cost,
      error,
    }),
  };
}

function numberOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}
