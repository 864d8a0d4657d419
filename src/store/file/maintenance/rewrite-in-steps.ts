import { requestTtl } from '../../contract/store.ts';
import { dropSessionRows } from '../../memory/rows.ts';
import { holder, type SessionRow, type SnapshotRow } from '../../memory/tables.ts';
import { betweenSteps } from '../../rules/between-steps.ts';
import { pausing } from '../../rules/maintenance-steps.ts';
import { toLine } from '../directory/checked-line.ts';
import { clearSession, withIntent } from '../directory/intent.ts';
import { portion } from '../sessions/journal.ts';
import type { JournalLine } from '../sessions/journal-line.ts';
import type { Gone } from '../sessions/session-tree.ts';
import type { FamilyCopy, MaintenanceContext } from './family-copy.ts';
import { NextJournal } from './next-journal.ts';
import { rewrittenLines } from './rewrite.ts';

/** How often the lines that turns have appended are copied without holding the lock while they get to the disk. */
const catchUps = 3;

/**
 * Rewrites the journal of a family without some sessions and snapshots, while turns continue: the new file is written a portion at a time,
 * then gets the lines that turns have appended meanwhile, and replaces the old one. Resolves to `false`, with nothing
 * changed, when what is to be removed has been used since the copy was read.
 */
export async function rewriteInSteps(
  context: MaintenanceContext,
  copy: FamilyCopy,
  gone: Gone,
): Promise<boolean> {
  const { cache, transaction, step } = context;
  const head = copy.newHead();
  if (head === undefined) return false;
  const next = new NextJournal(cache.disk, copy.journal.name, head);
  const rewriting = new Rewriting(context, copy, { gone, next });
  copy.watch(gone);
  try {
    await rewriting.begin();
    for (const data of rewriting.portions()) {
      const isOurs = data.length === 0 || (await transaction.write(() => next.write(data), noSave));
      if (!isOurs) return false;
      step(0);
      await betweenSteps();
    }
    for (let tries = 0; ; tries++) {
      await context.wait(next.sync());
      await rewriting.prepare();
      const isLast = tries >= catchUps;
      const outcome = await context.wait(transaction.write(() => rewriting.end(isLast), noSave));
      if (outcome === 'stale') return false;
      if (outcome === 'done') break;
      step(0);
      await betweenSteps();
    }
    copy.unwatch();
    await rewriting.forgetStates();
    return true;
  } catch (error) {
    await transaction.write(() => next.discard(), noSave).catch(() => {});
    throw error;
  }
}

const noSave = (): void => {};

/** How many states are freed at a time. */
const freed = 1000;

class Rewriting {
  readonly #context: MaintenanceContext;
  readonly #copy: FamilyCopy;
  readonly #gone: Gone;
  readonly #next: NextJournal;
  /** How far the old journal is in the new one. */
  #copied: number;
  /** Snapshots of the copy that have another parent now. */
  readonly #moved = new Set<SnapshotRow>();
  /** What stays of the sessions that turns use. */
  #prepared = new Map<SessionRow, Left>();

  constructor(
    context: MaintenanceContext,
    copy: FamilyCopy,
    { gone, next }: { readonly gone: Gone; readonly next: NextJournal },
  ) {
    this.#context = context;
    this.#copy = copy;
    this.#gone = gone;
    this.#next = next;
    this.#copied = copy.journal.size;
  }

  /** Removes what is gone from the copy. */
  async begin(): Promise<void> {
    for (const session of this.#copy.sessions.values()) {
      const left = await slowly(leftOf(session, this.#gone));
      for (const row of leave(left)) this.#moved.add(row);
    }
  }

  /** Finds out what stays of the sessions that turns use, so that under the lock it only replaces what there is. */
  async prepare(): Promise<void> {
    this.#prepared = new Map();
    const tree = this.#context.cache.trees.get(this.#copy.folder);
    for (const session of [...(tree?.sessions.values() ?? [])]) {
      this.#prepared.set(session, await slowly(leftOf(session, this.#gone)));
    }
  }

  /** Frees the states of what is gone, a part at a time. */
  async forgetStates(): Promise<void> {
    const tree = this.#context.cache.trees.get(this.#copy.folder);
    const ids = [...this.#gone.snapshots];
    for (let at = 0; tree !== undefined && at < ids.length; at += freed) {
      tree.forgetStates(ids.slice(at, at + freed));
      await betweenSteps();
    }
  }

  /** The new lines, as many at a time as are written under one hold of the lock; empty ones are pauses. */
  *portions(): Generator<Buffer, void> {
    const { clock } = this.#context.cache.tables;
    const left = [...this.#copy.sessions.values()].filter(({ id }) => !this.#gone.sessions.has(id));
    let lines: string[] = [];
    let bytes = 0;
    let steps = 0;
    const take = (): Buffer => {
      const text = lines.length === 0 ? '' : `${lines.join('\n')}\n`;
      [lines, bytes, steps] = [[], 0, 0];
      return Buffer.from(text);
    };
    const add = (line: JournalLine | undefined): void => {
      steps++;
      if (line === undefined) return;
      const text = toLine(line);
      lines.push(text);
      bytes += text.length;
    };
    const rewritten = rewrittenLines(this.#copy, left, {
      isMoved: (row) => this.#moved.has(row),
      receiptsAfter: clock.now() - requestTtl,
    });
    for (const line of rewritten) {
      add(line);
      if (steps >= portion.lines || bytes >= portion.bytes || line === undefined) yield take();
    }
    if (lines.length > 0) yield take();
  }

  /**
   * Puts the new journal in place of the old one if it says all that the old one says, else copies what is missing. Under the
   * lock; `isLast` waits for the disk rather than for turns to pause.
   */
  end(isLast: boolean): 'done' | 'more' | 'stale' {
    const copy = this.#copy;
    const next = this.#next;
    if (!copy.refreshSome(portion)) return copy.isNamed ? this.#discard() : 'more';
    if (copy.isNamed || !next.isOurs || this.#isUsed()) return this.#discard();
    const { size } = copy.journal;
    if (size > this.#copied) {
      const { cache } = this.#context;
      const added = cache.disk.open(copy.journal.name, (file) =>
        file.read(this.#copied, size - this.#copied),
      );
      if (added === undefined || !next.write(added)) return this.#discard();
      this.#copied = size;
      if (!isLast) return 'more';
      next.syncNow();
    }
    this.#replace();
    return 'done';
  }

  /** What stays of a session, with the snapshots that were added since that was found out. */
  #leftOf(session: SessionRow): Left {
    const left = this.#prepared.get(session);
    if (left === undefined || session.listed !== left.before) {
      return atOnce(leftOf(session, this.#gone));
    }
    // Another process may have written them, before it was decided what is gone.
    for (const row of session.listed.slice(left.count)) look(left, row, this.#gone);
    lookAtHead(left, this.#gone);
    return left;
  }

  #discard(): 'stale' {
    this.#next.discard();
    return 'stale';
  }

  /** Whether a run has been claimed for what is to be removed, or from it. */
  #isUsed(): boolean {
    const { sessions, snapshots } = this.#gone;
    const now = this.#context.cache.tables.clock.now();
    this.#copy.readRuns();
    return [...this.#copy.sessions.values()].some((session) => {
      if (sessions.has(session.id) && holder(session, now) !== undefined) return true;
      const held = sessions.has(session.id) ? [] : [session.run?.start, session.run?.base];
      return held.some((row) => row !== undefined && snapshots.has(row.id));
    });
  }

  #replace(): void {
    const { cache } = this.#context;
    const gone = [...this.#copy.sessions.values()].filter(({ id }) => this.#gone.sessions.has(id));
    const replace = (): void => {
      const tree = cache.trees.get(this.#copy.folder);
      // One that is not in step reads the new journal when it is used next.
      const isKnown = tree?.journal.exists === true && tree.refreshSome(portion);
      const file = this.#next.replace();
      if (!isKnown) return;
      const sessions = [...tree.sessions.values()];
      const lost = sessions.filter(({ id }) => this.#gone.sessions.has(id));
      if (lost.length > 0) dropSessionRows(cache.tables, new Set(lost));
      const moved = sessions.flatMap((session) => leave(this.#leftOf(session)));
      tree.rewritten(file, this.#gone, moved);
    };
    if (gone.length === 0) {
      replace();
      return;
    }
    withIntent(cache, { folders: [], sessions: gone }, () => {
      replace();
      for (const { scope, id } of gone) clearSession(cache, scope, id);
    });
  }
}

/** What stays of a session. */
interface Left {
  readonly session: SessionRow;
  /** Its snapshots when it was looked at, how many there were, and those of them that stay. */
  readonly before: readonly SnapshotRow[];
  count: number;
  readonly rows: SnapshotRow[];
  /** Those that get another parent. */
  readonly moved: Map<SnapshotRow, SnapshotRow | undefined>;
  /** By the id of what is gone: the nearest above it that stays. */
  readonly above: Map<string, SnapshotRow | undefined>;
}

function* leftOf(session: SessionRow, gone: Gone): Generator<undefined, Left> {
  const before = session.listed;
  const left: Left = { session, before, count: 0, rows: [], moved: new Map(), above: new Map() };
  for (const row of pausing(before)) {
    if (row === undefined) yield;
    else look(left, row, gone);
  }
  lookAtHead(left, gone);
  return left;
}

/** Takes in one more snapshot. Parents come first. */
function look(left: Left, row: SnapshotRow, { snapshots }: Gone): void {
  left.count++;
  const { parent } = row;
  const isOrphan = parent !== undefined && snapshots.has(parent.id);
  const above = isOrphan ? left.above.get(parent.id) : parent;
  if (snapshots.has(row.id)) left.above.set(row.id, above);
  else {
    left.rows.push(row);
    if (isOrphan) left.moved.set(row, above);
  }
}

/** A head that is not listed stays, too. */
function lookAtHead({ session: { head }, moved, above }: Left, { snapshots }: Gone): void {
  const parent = head !== undefined && head.index < 0 ? head.parent : undefined;
  if (head === undefined || parent === undefined || !snapshots.has(parent.id)) return;
  moved.set(head, above.get(parent.id));
}

/** Lets others run at each pause. */
async function slowly<Result>(steps: Generator<undefined, Result>): Promise<Result> {
  let step = steps.next();
  for (; step.done !== true; step = steps.next()) await betweenSteps();
  return step.value;
}

function atOnce<Result>(steps: Generator<undefined, Result>): Result {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

/** Makes what stays all that a session has; gives the rows that got another parent. */
function leave({ session, rows, moved }: Left): readonly SnapshotRow[] {
  session.listed = [...rows];
  for (const [row, parent] of moved) row.parent = parent;
  return [...moved.keys()];
}
