import { historyDelta } from '../../../session/delta.ts';
import type { History } from '../../../session/history.ts';
import { requestTtl } from '../../contract/store.ts';
import { allRows } from '../../memory/rows.ts';
import { type SessionRow, type SnapshotRow, sessionKey, type Tables } from '../../memory/tables.ts';
import type { DirectoryCache } from '../directory/cache.ts';
import { toLine } from '../directory/checked-line.ts';
import { clearSession, sweep, withIntent } from '../directory/intent.ts';
import { portion } from '../sessions/journal.ts';
import { iso, type JournalLine, toSessionLine, toSnapshotLine } from '../sessions/journal-line.ts';
import type { SessionTree } from '../sessions/session-tree.ts';
import { type NamedState, type StateDelta, toDelta } from '../sessions/state-delta.ts';

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
  const { name } = tree.journal;
  if (left.length === 0) disk.unlink(name);
  else {
    const head = toLine(tree.newHead() ?? {});
    const lines: string[] = [];
    const before = tables.clock.now() - requestTtl;
    for (const line of rewrittenLines(tree, left, before)) {
      if (line !== undefined) lines.push(toLine(line));
    }
    disk.replace(name, `${[head, ...lines].join('\n')}\n\n`);
  }
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

/**
 * The lines of a rewritten journal behind its head line, for some of its sessions and the rows that these still have. Between
 * two of them, `undefined` stands for work that came to no line yet.
 */
export function* rewrittenLines(
  tree: SessionTree,
  sessions: Iterable<SessionRow>,
  receiptsAfter: number,
): Generator<JournalLine | undefined, void> {
  const known = new Prefixes(tree);
  for (const session of sessions) {
    const { id, head, nextIndex } = session;
    const { head: _, ...first } = toSessionLine(session, undefined);
    yield { session: first };
    for (const row of allRows(session)) {
      const delta = toDelta(row.state, yield* known.basesOf(row));
      known.add(row);
      yield* linesOf(row, delta);
    }
    const ended = tree.lastEnded.get(id);
    yield {
      session: { id, head: head?.id ?? null, nextIndex },
      ...(ended === undefined ? {} : { ended }),
    };
  }
  const left = new Set(Array.from(sessions, ({ id }) => id));
  for (const [run, { sessionId, at, value }] of tree.receipts) {
    if (at <= receiptsAfter || !left.has(sessionId)) continue;
    yield { session: { id: sessionId }, receipts: [{ run, at: iso(at), value }] };
  }
}

/**
 * A snapshot with its state. One with many new messages takes several lines, each of which extends the state of the one
 * before: a line is read and written in one go.
 */
function* linesOf(row: SnapshotRow, delta: StateDelta): Generator<JournalLine, void> {
  const { base, messages = [], ...rest } = delta;
  const lineOf = (state: StateDelta): JournalLine => ({
    session: { id: row.session.id },
    snapshots: [{ ...toSnapshotLine(row), state }],
  });
  let [from, bytes] = [0, 0];
  const onBase = (): StateDelta => {
    const on = from === 0 ? base : row.id;
    return on === undefined ? {} : { base: on };
  };
  for (let at = 0; messages.length > 1 && at < messages.length; at++) {
    const size = JSON.stringify(messages[at]).length;
    if (at > from && (at - from >= portion.lines || bytes + size > portion.bytes)) {
      yield lineOf({ ...onBase(), messages: messages.slice(from, at) });
      [from, bytes] = [at, 0];
    }
    bytes += size;
  }
  const last = messages.slice(from);
  yield lineOf({ ...onBase(), ...(last.length === 0 ? {} : { messages: last }), ...rest });
}

/** How many messages are checked in one step. */
const batch = 256;

interface Common {
  readonly row: SnapshotRow;
  readonly length: number;
}

/** Which of the states written so far begins as another one does. */
class Prefixes {
  readonly #tree: SessionTree;
  readonly #rows = new Set<SnapshotRow>();
  readonly #byChain = new Map<string, SnapshotRow>();
  /** Rows whose chains are not in the map yet: most are never needed, and they take a hash of each message. */
  #pending: SnapshotRow[] = [];
  #last: SnapshotRow | undefined;

  constructor(tree: SessionTree) {
    this.#tree = tree;
  }

  /**
   * The one from which the fewest messages are new: the one with the most in common from the start, or the parent, whose messages
   * may be kept elsewhere.
   */
  *basesOf(row: SnapshotRow): Generator<undefined, readonly NamedState[]> {
    if (this.#rows.size === 0) return [];
    const parent = row.parent !== undefined && this.#rows.has(row.parent) ? row.parent : undefined;
    const base = this.#isNearest(row, parent) ? parent : yield* this.#nearest(row, parent);
    return base === undefined ? [] : [{ name: base.id, state: base.state }];
  }

  *#nearest(
    row: SnapshotRow,
    parent: SnapshotRow | undefined,
  ): Generator<undefined, SnapshotRow | undefined> {
    const longest = yield* this.#longest(row);
    if (longest === undefined || parent === undefined) return longest?.row ?? parent;
    const { history } = row.state;
    const isEnough = newMessages(parent.state.history, history) <= history.length - longest.length;
    return isEnough ? parent : longest.row;
  }

  add(row: SnapshotRow): void {
    this.#rows.add(row);
    this.#pending.push(row);
    this.#last = row;
  }

  /** Whether a row continues its parent, and nothing that was written before can have more in common with it. */
  #isNearest(row: SnapshotRow, parent: SnapshotRow | undefined): boolean {
    if (parent === undefined) return false;
    const isMoved = this.#tree.rows.get(row.id)?.was.parent !== parent;
    if (isMoved && parent !== this.#last) return false;
    return parent.state.history.isPrefixOf(row.state.history);
  }

  /** The one with the most messages in common from the start, and how many. */
  *#longest({ state: { history } }: SnapshotRow): Generator<undefined, Common | undefined> {
    const pending = this.#pending;
    this.#pending = [];
    for (const row of pending) yield* this.#register(row);
    yield* history.chainInSteps(batch);
    for (let length = history.length; length > 0; length--) {
      const row = this.#byChain.get(history.chain(length));
      if (row !== undefined) return { row, length };
      if (length % batch === 0) yield;
    }
    return undefined;
  }

  *#register(row: SnapshotRow): Generator<undefined, void> {
    const { history } = row.state;
    yield* history.chainInSteps(batch);
    for (let length = history.length; length > 0; length--) {
      const chain = history.chain(length);
      if (this.#byChain.has(chain)) return;
      this.#byChain.set(chain, row);
      if (length % batch === 0) yield;
    }
  }
}

function newMessages(base: History, next: History): number {
  const delta = historyDelta(base, next);
  if (delta.kind === 'append') return delta.messages.length;
  return delta.pieces.reduce(
    (count, piece) => count + (piece.kind === 'new' ? piece.messages.length : 0),
    0,
  );
}
