import type { SpanError, SpanRecord } from '../../core/trace.ts';
import { genAi, attributes as names, operations } from '../../core/trace-names.ts';
import type { Cost } from '../../protocol/turn.ts';
import { addUsage } from '../../protocol/usage.ts';
import { isModelCall, isTurn, type SpanFacts } from './span-facts.ts';

/** A turn with the figures of its trace. Times are milliseconds since the epoch; without an end it still runs. */
export interface RecordedTurn extends Partial<NonNullable<SpanFacts['turn']>> {
  readonly spanId: string;
  readonly agent: string;
  readonly sessionId: string;
  /** The owner of the session. */
  readonly owner?: string;
  /** Of a turn that has saved one. */
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

/** A recorded span with its times. */
export interface SpanWithFacts {
  readonly span: Omit<SpanRecord, 'content'>;
  readonly startedAt: number;
  readonly endedAt?: number;
  readonly facts?: SpanFacts | undefined;
}

/** The turns among spans, with what was done in them, in the order of the spans. */
export function recordedTurns(spans: readonly SpanWithFacts[]): readonly RecordedTurn[] {
  const byId = new Map(spans.map((each) => [each.span.spanId, each.span]));
  const sums = new Map<string, Sum>();
  for (const { span } of spans) if (isTurn(span)) sums.set(span.spanId, emptySum());
  for (const each of spans) {
    // A sub-agent's work counts for the turns that it works for, too.
    for (const sum of sumsAbove(each.span, byId, sums)) count(sum, each);
  }
  return spans.flatMap((each) => {
    const sum = sums.get(each.span.spanId);
    return sum ? [toTurn(each, sum, byId.get(each.span.parentId ?? ''))] : [];
  });
}

interface Sum {
  readonly models: Set<string>;
  modelCalls: number;
  toolCalls: number;
  tokens: number;
  cost: Cost | undefined;
}

function emptySum(): Sum {
  return { models: new Set(), modelCalls: 0, toolCalls: 0, tokens: 0, cost: undefined };
}

function* sumsAbove(
  span: SpanWithFacts['span'],
  byId: ReadonlyMap<string, SpanWithFacts['span']>,
  sums: ReadonlyMap<string, Sum>,
): Iterable<Sum> {
  for (let at = byId.get(span.parentId ?? ''); at; at = byId.get(at.parentId ?? '')) {
    const sum = sums.get(at.spanId);
    if (sum) yield sum;
  }
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
    ...(invocation?.owner !== undefined && { owner: invocation.owner }),
    turnIndex: numberOf(attributes[names.turnIndex]),
    ...(typeof snapshotId === 'string' && { snapshotId }),
    startedAt,
    ...(endedAt !== undefined && { endedAt }),
    ...sum,
    models: [...models],
    ...(cost && { cost }),
    ...(error && { error }),
  };
}

function numberOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}
