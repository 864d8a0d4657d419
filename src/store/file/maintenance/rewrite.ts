import type { Message } from '../../../protocol/message.ts';
import type { Link } from '../../../session/compact-history.ts';
import { historyDelta } from '../../../session/delta.ts';
import type { History } from '../../../session/history.ts';
import { emptyState } from '../../../session/session-state.ts';
import { requestTtl } from '../../contract/store.ts';
import { allRows } from '../../memory/rows.ts';
import { type SessionRow, type SnapshotRow, sessionKey, type Tables } from '../../memory/tables.ts';
import type { DirectoryCache } from '../directory/cache.ts';
import { toLine } from '../directory/checked-line.ts';
import { clearSession, sweep, withIntent } from '../directory/intent.ts';
import { portion } from '../sessions/journal.ts';
import { iso, type JournalLine, toSessionLine, toSnapshotLine } from '../sessions/journal-line.ts';
import type { SessionTree } from '../sessions/session-tree.ts';
import { documentsDelta, messagesDelta, type StateDelta } from '../sessions/state-delta.ts';

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
    const receiptsAfter = tables.clock.now() - requestTtl;
    const isMoved = (row: SnapshotRow) => tree.rows.get(row.id)?.was?.parent !== row.parent;
    for (const line of rewrittenLines(tree, left, { isMoved, receiptsAfter })) {
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
 * two of them, `undefined` is a pause in work that has not produced a line yet.
 */
export function* rewrittenLines(
  tree: SessionTree,
  sessions: Iterable<SessionRow>,
  {
    isMoved,
    receiptsAfter,
  }: {
    /** Whether a snapshot has another parent than in the journal that there is. */
    readonly isMoved: (row: SnapshotRow) => boolean;
    readonly receiptsAfter: number;
  },
): Generator<JournalLine | undefined, void> {
  const known = new Prefixes(isMoved);
  for (const session of sessions) {
    const { id, head, nextIndex } = session;
    const { head: _, ...first } = toSessionLine(session, undefined);
    yield { session: first };
    for (const row of allRows(session)) {
      const base = yield* known.baseOf(row);
      known.add(row);
      yield* linesOf(row, base);
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
function* linesOf(row: SnapshotRow, base: SnapshotRow | undefined): Generator<JournalLine, void> {
  const { history } = row.state;
  const before = (base?.state ?? emptyState).history;
  const isLonger = before.isPrefixOf(history);
  let on = base?.id;
  let messages: Message[] = [];
  const line = (rest: Omit<StateDelta, 'base'>): JournalLine => {
    const state = { ...(on === undefined ? {} : { base: on }), ...rest };
    return { session: { id: row.session.id }, snapshots: [{ ...toSnapshotLine(row), state }] };
  };
  let bytes = 0;
  for (const message of isLonger ? history.from(before.length) : []) {
    const size = JSON.stringify(message).length;
    const isFull = messages.length >= portion.lines || bytes + size > portion.bytes;
    if (messages.length > 0 && isFull) {
      yield line({ messages });
      [on, messages, bytes] = [row.id, [], 0];
    }
    messages.push(message);
    bytes += size;
  }
  const added = messages.length === 0 ? {} : { messages };
  yield line({
    ...(isLonger ? added : messagesDelta(before, history)),
    ...documentsDelta(row.state, base && { name: base.id, state: base.state }),
  });
}

/** How many messages are checked in one step. */
const batch = 256;

interface Common {
  readonly row: SnapshotRow;
  readonly length: number;
}

/** Which of the states written so far begins as another one does. */
class Prefixes {
  readonly #isMoved: (row: SnapshotRow) => boolean;
  readonly #rows = new Set<SnapshotRow>();
  readonly #byChain = new Map<string, SnapshotRow>();
  readonly #woken = new Map<Link, History>();
  /** Rows whose chains are not in the map yet: most are never needed, and they take a hash of each message. */
  #pending: SnapshotRow[] = [];
  #last: SnapshotRow | undefined;

  constructor(isMoved: (row: SnapshotRow) => boolean) {
    this.#isMoved = isMoved;
  }

  /**
   * The one from which the fewest messages are new: the one with the most in common from the start, or the parent or the last
   * one, whose messages may be kept elsewhere.
   */
  *baseOf(row: SnapshotRow): Generator<undefined, SnapshotRow | undefined> {
    if (this.#rows.size === 0) return undefined;
    const parent = row.parent !== undefined && this.#rows.has(row.parent) ? row.parent : undefined;
    if (this.#isNearest(row, parent)) return parent;
    const longest = yield* this.#longest(row);
    const { history } = row.state;
    let [nearest, least] = [longest?.row ?? parent, history.length - (longest?.length ?? 0)];
    for (const each of new Set([this.#last, parent])) {
      if (each === undefined) continue;
      const count = newMessages(each.state.history, history);
      if (count < least || (count === least && each === parent)) [nearest, least] = [each, count];
    }
    return nearest;
  }

  add(row: SnapshotRow): void {
    this.#rows.add(row);
    this.#pending.push(row);
    this.#last = row;
  }

  /** Whether a row continues its parent, and nothing that was written before can have more in common with it. */
  #isNearest(row: SnapshotRow, parent: SnapshotRow | undefined): boolean {
    if (parent === undefined) return false;
    if (parent !== this.#last && this.#isMoved(row)) return false;
    return parent.state.history.isPrefixOf(row.state.history);
  }

  /** The one with the most messages in common from the start, and how many. */
  *#longest({ state }: SnapshotRow): Generator<undefined, Common | undefined> {
    const pending = this.#pending;
    this.#pending = [];
    for (const row of pending) yield* this.#register(row);
    const history = yield* state.history.wakeInSteps(this.#woken, batch);
    for (let length = history.length; length > 0; length--) {
      const row = this.#byChain.get(history.chain(length));
      if (row !== undefined) return { row, length };
      if (length % batch === 0) yield;
    }
    return undefined;
  }

  *#register(row: SnapshotRow): Generator<undefined, void> {
    const history = yield* row.state.history.wakeInSteps(this.#woken, batch);
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
