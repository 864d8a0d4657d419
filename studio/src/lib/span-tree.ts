import type { Snapshot } from '../../../src/client/index.ts';
import type { SpanError, TraceSpan } from './traces.ts';

/** A span in the tree of its turn. */
export interface SpanRow {
  readonly span: TraceSpan;
  readonly depth: number;
}

/** The spans of the turn that made a snapshot, parents before their children; empty when they are not known. */
export function spansOfTurn(
  spans: readonly TraceSpan[],
  snapshot: Pick<Snapshot, 'snapshotId' | 'sessionId' | 'turnIndex' | 'createdAt' | 'updatedAt'>,
): readonly SpanRow[] {
  const turns = spans.filter(
    ({ name, attributes }) =>
      name.startsWith('turn ') && attributes['waymark.session.id'] === snapshot.sessionId,
  );
  const named = turns.find(
    ({ attributes }) => attributes['waymark.snapshot.id'] === snapshot.snapshotId,
  );
  const root = named ?? turns.findLast((turn) => couldBe(turn, snapshot));
  return root ? below(root, spans, 0) : [];
}

// A turn that failed or was stopped names no snapshot; its number and its time do.
function couldBe(
  { attributes, startedAt, endedAt = Number.POSITIVE_INFINITY }: TraceSpan,
  { turnIndex, updatedAt }: Pick<Snapshot, 'turnIndex' | 'updatedAt'>,
): boolean {
  if (attributes['waymark.snapshot.id'] !== undefined) return false;
  const saved = Date.parse(updatedAt);
  return (
    attributes['waymark.turn.index'] === turnIndex && startedAt <= saved && saved <= endedAt + 100
  );
}

function below(span: TraceSpan, spans: readonly TraceSpan[], depth: number): SpanRow[] {
  const children = spans.filter(({ parentId }) => parentId === span.spanId);
  return [{ span, depth }, ...children.flatMap((child) => below(child, spans, depth + 1))];
}

/** How a tool call went: how long it took, and what it threw. */
export interface ToolSpan {
  readonly ms: number;
  readonly error?: SpanError;
}

/** How each tool call went, by its ref. */
export function toolTimes(spans: readonly TraceSpan[]): ReadonlyMap<string, ToolSpan> {
  const times = new Map<string, ToolSpan>();
  for (const { attributes, startedAt, endedAt, error } of spans) {
    const ref = attributes['gen_ai.tool.call.id'];
    if (typeof ref !== 'string' || endedAt === undefined) continue;
    times.set(ref, { ms: endedAt - startedAt, ...(error && { error }) });
  }
  return times;
}
