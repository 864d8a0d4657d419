import type { Totals } from '../../../protocol/usage.ts';
import type { Scope } from '../../contract/store.ts';
import type { StartFact } from '../../rules/decide-claim.ts';
import type { Dialect } from '../database/dialect.ts';
import { first, one, type Plan, statement } from '../database/query.ts';
import { uuidFromHex } from '../values/bytes.ts';
import { code, fromFinish, fromTotals } from '../values/codes.ts';
import { scopeKey } from '../values/scope.ts';

/** The snapshot that a run starts from. */
export interface StartRow {
  readonly start_row_id: number | null;
  /** Hexadecimal. */
  readonly start_id: string | null;
  readonly start_turn: number | null;
  readonly start_finish: number | null;
  readonly start_idx: number | null;
  readonly start_totals: string | null;
  readonly start_parent: number | null;
  /** Whether it may be answered: a succeeded snapshot has it as its parent, or it is an edit. Looked up for interrupted ones only. */
  readonly start_answered: number;
}

/** The columns of the snapshot `s` that a run starts from. */
export const startColumns = (
  d: Dialect,
): string => `s.row_id AS start_row_id, ${d.hex('s.id')} AS start_id, s.turn AS start_turn, s.finish AS start_finish,
  s.idx AS start_idx, s.parent AS start_parent, s.totals AS start_totals,
  CASE WHEN s.finish = ${code.interrupted} AND (s.event = ${code.edit} OR EXISTS (
    SELECT 1 FROM @snapshots a
    WHERE a.session = s.session AND a.parent = s.row_id AND a.status = ${code.succeeded}))
  THEN 1 ELSE 0 END AS start_answered`;

const selectFailedTotals = statement<{ totals: string }>(
  'claim_failed_totals',
  `SELECT f.totals FROM @sessions z LEFT JOIN @snapshots s ON s.row_id = $4
   LEFT JOIN @snapshots l ON l.row_id = CASE WHEN s.idx IS NULL THEN s.parent ELSE s.row_id END
   JOIN @snapshots f ON f.session = z.row_id AND f.idx > COALESCE(l.idx, -1)
   WHERE z.owner = $1 AND z.agent = $2 AND z.id = $3 AND f.status IN (${code.failed}, ${code.aborted})
     AND f.totals IS NOT NULL
     AND (f.parent = l.row_id OR (f.parent IS NULL AND l.row_id IS NULL))
   ORDER BY f.idx DESC LIMIT 1`,
);
const selectAnswer = statement<{ found: number }>(
  'claim_answer',
  `WITH RECURSIVE q(row_id, session, parent, event) AS (
     SELECT s.row_id, s.session, s.parent, s.event FROM @snapshots s WHERE s.row_id = $1
     UNION ALL
     SELECT s.row_id, s.session, s.parent, s.event FROM q JOIN @snapshots s ON s.row_id = q.parent
     WHERE q.event = ${code.edit} AND s.finish = ${code.interrupted}),
   c(row_id, event) AS (
     SELECT a.row_id, a.event FROM q JOIN @snapshots a ON a.session = q.session AND a.parent = q.row_id
     WHERE a.status = ${code.succeeded}
     UNION
     SELECT a.row_id, a.event FROM c JOIN @snapshots b ON b.row_id = c.row_id
     JOIN @snapshots a ON a.session = b.session AND a.parent = b.row_id
     WHERE c.event IN (${code.toolIterationEnd}, ${code.edit}) AND a.status = ${code.succeeded})
   SELECT COUNT(*) AS found FROM c WHERE c.event NOT IN (${code.toolIterationEnd}, ${code.edit})`,
);
/** A snapshot that a run starts from, as the rules see it. */
export function* startFact(row: StartRow): Plan<StartFact<number> | null> {
  return toStartFact(row, yield* isAnswered(row));
}

/**
 * Whether a turn that succeeded continues from a snapshot. A snapshot within a turn is no answer before the turn has ended, and an
 * edit is none, which takes a closer look; it is needed only where an interrupted snapshot is the parent of another, or an edit.
 * An edit is answered when the snapshot that it edits is, or another edit of it.
 */
function* isAnswered({ start_row_id, start_answered }: StartRow): Plan<boolean> {
  if (start_answered !== 1 || start_row_id === null) return false;
  return (yield* one(selectAnswer, start_row_id)).found > 0;
}

/** A row without a snapshot gives `null`. */
export function toStartFact(row: StartRow, isAnswered: boolean): StartFact<number> | null {
  if (row.start_row_id === null || row.start_id === null) return null;
  return {
    key: row.start_row_id,
    index: row.start_idx ?? -1,
    isListed: row.start_idx !== null,
    parent: row.start_parent,
    snapshotId: uuidFromHex(row.start_id),
    turnIndex: row.start_turn ?? 0,
    finishReason: fromFinish(row.start_finish),
    totals: fromTotals(row.start_totals),
    isAnswered,
  };
}

/** Whether the session has a snapshot behind the start that may be of a failed turn. Most have none. */
function mayHaveFailed(start: StartFact<number> | null, nextIndex: number): boolean {
  return start === null ? nextIndex > 0 : !start.isListed || nextIndex > start.index + 1;
}

/** The totals of the last failed or aborted turn that started from a snapshot: they include it, and those before it. */
export function* totalsOfFailed(
  start: StartFact<number> | null,
  where: { readonly scope: Scope; readonly sessionId: string; readonly nextIndex: number },
): Plan<Totals | undefined> {
  if (!mayHaveFailed(start, where.nextIndex)) return undefined;
  const values = [...scopeKey(where.scope), where.sessionId, start?.key ?? null] as const;
  const row = yield* first(selectFailedTotals, ...values);
  return fromTotals(row?.totals ?? null);
}
