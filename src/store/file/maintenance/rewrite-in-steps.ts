import { letOthersRun } from '../../../core/platform.ts';
import { requestTtl } from '../../contract/store.ts';
import { removeRows } from '../../memory/prune.ts';
import { allRows, dropSessionRows } from '../../memory/rows.ts';
import { holder, type SessionRow, type Tables } from '../../memory/tables.ts';
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
 * then gets the lines that turns have appended meanwhile, and takes the place of the old one. Resolves to `false`, with nothing
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
    for (const data of rewriting.portions()) {
      const isOurs = data.length === 0 || (await transaction.write(() => next.write(data), noSave));
      if (!isOurs) return false;
      step(0);
      await letOthersRun();
    }
    for (let tries = 0; ; tries++) {
      await next.sync();
      const outcome = await transaction.write(() => rewriting.end(tries >= catchUps), noSave);
      if (outcome !== 'more') return outcome === 'done';
      step(0);
      await letOthersRun();
    }
  } catch (error) {
    await transaction.write(() => next.discard(), noSave).catch(() => {});
    throw error;
  }
}

const noSave = (): void => {};

class Rewriting {
  readonly #context: MaintenanceContext;
  readonly #copy: FamilyCopy;
  readonly #gone: Gone;
  readonly #next: NextJournal;
  /** How far the old journal is in the new one. */
  #copied: number;

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
    for (const session of copy.sessions.values()) removeOwn(copy.tables, session, gone);
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
    for (const line of rewrittenLines(this.#copy, left, clock.now() - requestTtl)) {
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
      this.#copy.rewritten(file, this.#gone);
      if (!isKnown) return;
      const sessions = [...tree.sessions.values()];
      const lost = sessions.filter(({ id }) => this.#gone.sessions.has(id));
      if (lost.length > 0) dropSessionRows(cache.tables, new Set(lost));
      for (const session of sessions) removeOwn(cache.tables, session, this.#gone);
      tree.rewritten(file, this.#gone);
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

/** Removes what is gone of a session that stays. */
function removeOwn(tables: Tables, session: SessionRow, { sessions, snapshots }: Gone): void {
  if (sessions.has(session.id)) return;
  const ids = allRows(session).map((row) => row.id);
  removeRows(tables, session, new Set(ids.filter((id) => snapshots.has(id))));
}
