import type { Scope } from '../../contract/store.ts';
import { trash } from '../content/gc-queue.ts';
import type { Hint } from '../database/driver.ts';
import { all, first, one, type Plan, readUnderLock, run, statement } from '../database/query.ts';
import { eraseMemory } from '../memory.ts';
import { checkFree, type HolderRow, holderColumns, isHeld } from '../runs/open-run.ts';
import { eraseSpend } from '../spend.ts';
import { uuidText } from '../values/bytes.ts';
import { scopeKey, sessionKey } from '../values/scope.ts';

export interface ErasedRow extends HolderRow {
  readonly row_id: number;
  readonly owner: string;
  readonly agent: string;
  readonly id: string;
  readonly head: number | null;
  readonly next_index: number;
}

/** A session that may be erased as long as it is as it was. */
export interface SpentSession {
  readonly session: number;
  readonly head: number | null;
  readonly nextIndex: number;
}

const columns = (now: string): string => `
  SELECT ${now} AS now, z.row_id, z.owner, z.agent, z.id, z.head, z.next_index, ${holderColumns}
  FROM @sessions z LEFT JOIN @runs r ON r.session = z.row_id`;

const selectSession = readUnderLock<ErasedRow>(
  'erase_session',
  (d) => `${columns(d.now)} WHERE z.owner = $1 AND z.agent = $2 AND z.id = $3 ${d.lock('z')}`,
);
const selectByRowId = readUnderLock<ErasedRow>(
  'erase_session_by_row_id',
  (d) => `${columns(d.now)} WHERE z.row_id = $1 ${d.lock('z')}`,
);
const selectStarted = readUnderLock<ErasedRow>(
  'erase_sub_sessions',
  (d) => `${columns(d.now)}
    WHERE z.owner = $1 AND z.started_by_agent = $2 AND z.started_by_session = $3 ${d.lock('z')}`,
);
const selectOwned = readUnderLock<ErasedRow>(
  'erase_owned',
  (d) => `${columns(d.now)} WHERE z.owner = $1 LIMIT ${2 * d.atOnce.sessions} ${d.lock('z')}`,
);
const countSnapshots = statement<{ count: number }>(
  'erase_count',
  (d) =>
    `SELECT COUNT(*) AS count FROM @snapshots WHERE session ${d.integers('$1')} AND id IS NOT NULL`,
);
// The first two have no index for this: the journal holds what runs now, and what ended a moment ago; few runs are given up.
const deletions = ['journal', 'dead_runs', 'requests', 'effects'].map((table) =>
  statement(`erase_${table}`, (d) => `DELETE FROM @${table} WHERE session ${d.integers('$1')}`),
);
const deleteRuns = statement<{ id: Uint8Array }>(
  'erase_runs',
  (d) => `DELETE FROM @runs WHERE session ${d.integers('$1')} RETURNING id`,
);
const deleteSessions = statement(
  'erase',
  (d) => `DELETE FROM @sessions WHERE row_id ${d.integers('$1')}`,
);

export interface Erased {
  readonly sessions: number;
  readonly snapshots: number;
  readonly hints: readonly Hint[];
}

/** A session and, however deep, the sessions of the sub-agents that were started in it. */
function* withSubSessions(session: ErasedRow): Plan<readonly ErasedRow[]> {
  const found = new Map([[session.row_id, session]]);
  for (const { owner, agent, id } of found.values()) {
    for (const sub of yield* all(selectStarted, owner, agent, id)) {
      if (!found.has(sub.row_id)) found.set(sub.row_id, sub);
    }
  }
  return [...found.values()];
}

/** Erases a session together with its sub-agents' sessions; `undefined` when there is none. */
export function* eraseSession(scope: Scope, sessionId: string): Plan<Erased | undefined> {
  const session = yield* first(selectSession, ...scopeKey(scope), sessionKey(sessionId));
  if (session === undefined) return undefined;
  const family = yield* withSubSessions(session);
  for (const each of family) checkFree(each, each.id);
  return yield* eraseRows(family);
}

/** Erases sessions, except those that continued or are worked on, and those whose sub-agents' sessions are not all `spent`. */
export function* eraseSpent(
  sessions: readonly SpentSession[],
  spent: ReadonlyMap<number, SpentSession>,
): Plan<Erased> {
  const isFree = (row: ErasedRow): boolean => {
    const was = spent.get(row.row_id);
    return was?.head === row.head && was.nextIndex === row.next_index && !isHeld(row);
  };
  const erased = new Map<number, ErasedRow>();
  for (const { session: rowId } of sessions) {
    const session = erased.has(rowId) ? undefined : yield* first(selectByRowId, rowId);
    if (session === undefined) continue;
    const family = yield* withSubSessions(session);
    if (!family.every(isFree)) continue;
    for (const each of family) erased.set(each.row_id, each);
  }
  return yield* eraseRows([...erased.values()]);
}

/** Erases some of an owner's sessions, also those that are being worked on. */
export function* eraseOwned(owner: string): Plan<Erased> {
  const key = sessionKey(owner) || '\u0001';
  yield* eraseSpend(key);
  yield* eraseMemory(key);
  return yield* eraseRows(yield* all(selectOwned, key));
}

/**
 * Forgets sessions, their runs, events and steps at once. Their snapshots are unknown from then on; the rows, which may be
 * many, go in batches after that.
 */
function* eraseRows(rows: readonly ErasedRow[]): Plan<Erased> {
  if (rows.length === 0) return { sessions: 0, snapshots: 0, hints: [] };
  const rowIds = rows.map(({ row_id: rowId }) => rowId);
  const sessions = JSON.stringify(rowIds);
  for (const deletion of deletions) yield* run(deletion, sessions);
  const { count: snapshots } = yield* one(countSnapshots, sessions);
  const hints: Hint[] = [];
  for (const { id } of yield* all(deleteRuns, sessions)) {
    hints.push({ kind: 'run', id: uuidText(id) }, { kind: 'events', id: uuidText(id) });
  }
  yield* trash('session', rowIds);
  yield* run(deleteSessions, sessions);
  return { sessions: rows.length, snapshots, hints };
}
