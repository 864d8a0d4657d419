import { requestTtl } from '../../contract/store.ts';
import { allRows } from '../../memory/rows.ts';
import { type SessionRow, type SnapshotRow, sessionKey, type Tables } from '../../memory/tables.ts';
import type { DirectoryCache } from '../directory/cache.ts';
import { toLine } from '../directory/checked-line.ts';
import { clearSession, sweep, withIntent } from '../directory/intent.ts';
import { iso, type JournalLine, toSessionLine, toSnapshotLine } from '../sessions/journal-line.ts';
import type { SessionTree } from '../sessions/session-tree.ts';
import { type NamedState, toDelta } from '../sessions/state-delta.ts';

/** Whether sessions or snapshots that a journal has are no longer in the tables. */
export function hasLost(tables: Tables, { sessions, rows }: SessionTree): boolean {
  return (
    [...sessions.values()].some((session) => !isThere(tables, session)) ||
    [...rows.values()].some(({ row }) => tables.snapshots.get(row.id) !== row)
  );
}

/**
 * Rewrites families without the rows that are no longer in the tables, one after the other: what was pruned or erased is gone from
 * the disk when this returns.
 */
export function rewriteFamilies(cache: DirectoryCache, trees: readonly SessionTree[]): void {
  if (trees.length === 0) return;
  const folders = trees.map((tree) => tree.folder);
  const sessions = trees.flatMap((tree) => [...tree.sessions.values()]);
  const gone = sessions.filter((session) => !isThere(cache.tables, session));
  withIntent(cache, { folders, sessions: gone }, () => {
    for (const tree of trees) rewrite(cache, tree);
    for (const session of gone) clearSession(cache, session.scope, session.id);
    for (const folder of folders) sweep(cache, folder);
  });
}

function rewrite(cache: DirectoryCache, tree: SessionTree): void {
  const { tables, disk } = cache;
  const left = [...tree.sessions.values()].filter((session) => isThere(tables, session));
  for (const session of left) forgetEndedRun(cache, session);
  // Read again, so that messages that are the same are the same objects.
  tree.states.cool();
  const known = new Prefixes();
  const lines = left.flatMap((session) => [
    ...linesOf(session, known),
    ...receiptLines(session, tree, tables.clock.now() - requestTtl),
  ]);
  const { name } = tree.journal;
  if (left.length === 0) disk.unlink(name);
  else
    disk.replace(
      name,
      `${[tree.newHead() ?? {}, ...lines].map((line) => `${toLine(line)}\n`).join('')}\n`,
    );
  tree.journal.forget();
  tree.refresh();
}

// The journal has known that the run was over, and forgets it now.
function forgetEndedRun(cache: DirectoryCache, session: SessionRow): void {
  const file = cache.runFile(session);
  file.refresh();
  if (file.run === undefined && file.journal.exists) file.remove();
}

function isThere({ sessions }: Tables, session: SessionRow): boolean {
  return sessions.get(sessionKey(session.scope, session.id)) === session;
}

function linesOf(session: SessionRow, known: Prefixes): readonly JournalLine[] {
  const { id, head, nextIndex } = session;
  const { head: _, ...first } = toSessionLine(session, undefined);
  const snapshots = allRows(session).map((row) => {
    const state = toDelta(row.state, known.basesOf(row));
    known.add(row);
    return { session: { id }, snapshots: [{ ...toSnapshotLine(row), state }] };
  });
  return [{ session: first }, ...snapshots, { session: { id, head: head?.id ?? null, nextIndex } }];
}

function receiptLines(
  { id }: SessionRow,
  { receipts }: SessionTree,
  before: number,
): readonly JournalLine[] {
  const kept = [...receipts].filter(([, { sessionId, at }]) => sessionId === id && at > before);
  if (kept.length === 0) return [];
  const lines = kept.map(([run, { at, value }]) => ({ run, at: iso(at), value }));
  return [{ session: { id }, receipts: lines }];
}

/** Which of the states written so far begins as another one does. */
class Prefixes {
  readonly #byChain = new Map<string, SnapshotRow>();
  readonly #rows = new Set<SnapshotRow>();

  /** The one with the most messages in common from the start, else the parent, whose messages may be kept elsewhere. */
  basesOf({ state: { history }, parent }: SnapshotRow): readonly NamedState[] {
    let base: SnapshotRow | undefined;
    for (let length = history.length; base === undefined && length > 0; length--) {
      base = this.#byChain.get(history.chain(length));
    }
    base ??= parent !== undefined && this.#rows.has(parent) ? parent : undefined;
    return base === undefined ? [] : [{ name: base.id, state: base.state }];
  }

  add(row: SnapshotRow): void {
    this.#rows.add(row);
    const { history } = row.state;
    for (let length = history.length; length > 0; length--) {
      const chain = history.chain(length);
      if (this.#byChain.has(chain)) return;
      this.#byChain.set(chain, row);
    }
  }
}
