import {
  type MaintenanceOptions,
  type PruneReport,
  type RetentionPolicy,
  requestTtl,
  type Scope,
} from '../../contract/store.ts';
import { select, selectSlowly } from '../../memory/prune.ts';
import { allRows } from '../../memory/rows.ts';
import { type SessionRow, sessionKey } from '../../memory/tables.ts';
import { betweenSteps } from '../../rules/between-steps.ts';
import { createSteps } from '../../rules/maintenance-steps.ts';
import { checkPolicy, type Selection } from '../../rules/retention.ts';
import type { DirectoryCache } from '../directory/cache.ts';
import { ownerFolder, scopeFolder } from '../directory/layout.ts';
import type { DirectoryTransaction } from '../directory/transaction.ts';
import { emptyTrash } from '../directory/trash.ts';
import { portion } from '../sessions/journal.ts';
import type { Gone, SessionTree } from '../sessions/session-tree.ts';
import { Baton } from './baton.ts';
import { batch, dropFamilies, dropRunFiles } from './drop.ts';
import { FamilyCopy, type MaintenanceContext, readToEnd } from './family-copy.ts';
import { familiesIn, scopeFolders, scopesOf } from './folders.ts';
import { rewriteInSteps } from './rewrite-in-steps.ts';
import {
  isAsSeen,
  type SeenFamily,
  type SeenSession,
  SessionList,
  seeFamily,
  starterOf,
} from './seen-family.ts';
import { isUnswept, markUnswept, sweepInSteps } from './sweep-in-steps.ts';

/** How often a family is examined again because it was used meanwhile; what is left then, the next call removes. */
const maxTries = 8;

/** How many families are worked on at once: while one waits for the disk, another uses the thread. */
const atOnce = 8;

/** Families with more snapshots are examined in a copy. */
const manyRows = 500;

/** Removes what a policy does not keep, family by family. Turns run between two steps, of which a long session takes many. */
export async function prune(
  cache: DirectoryCache,
  transaction: DirectoryTransaction,
  {
    policy,
    scope,
    options,
  }: {
    readonly policy: RetentionPolicy;
    readonly scope: Scope | undefined;
    readonly options: MaintenanceOptions | undefined;
  },
): Promise<PruneReport> {
  checkPolicy(policy);
  const baton = new Baton();
  const wait = async <Result>(disk: Promise<Result>): Promise<Result> => {
    baton.give();
    try {
      return await disk;
    } finally {
      await baton.take();
    }
  };
  const context = { cache, transaction, step: createSteps(options), wait };
  await transaction.open();
  const { disk } = cache;
  const pruning = new Pruning(context, policy);
  const within = scope === undefined ? scopeFolders(disk) : [scopeFolder(scope)];
  const folders = familiesIn(disk, within);
  let isStopped = false;
  const pruneSome = async (): Promise<void> => {
    await baton.take();
    try {
      for (let next = await folders.next(); next.done !== true; next = await folders.next()) {
        await pruning.prune(next.value);
        context.step();
        await betweenSteps();
        if (isStopped) return;
      }
    } catch (error) {
      isStopped = true;
      throw error;
    } finally {
      baton.give();
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: atOnce }, pruneSome));
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
  if (pruning.hasSpent) {
    if (scope !== undefined) await pruning.findOthers(scope);
    try {
      await pruning.dropSpent();
    } finally {
      await emptyTrash(cache.disk, (work) => transaction.write(work, () => {}));
    }
  }
  return pruning.report;
}

/** What is to be removed of a family. */
interface Choice {
  readonly sessions: readonly SessionRow[];
  readonly snapshots: readonly string[];
}

class Pruning {
  readonly #context: MaintenanceContext;
  readonly #policy: RetentionPolicy;
  /** Sessions of which nothing would be left, by key: the folders that they are in. */
  readonly #spent = new Map<string, string>();
  /** By the key of a session: the keys of those that sub-agents started in it. */
  readonly #started = new Map<string, Set<string>>();
  readonly #dropped = new Set<string>();
  #snapshots = 0;

  constructor(context: MaintenanceContext, policy: RetentionPolicy) {
    this.#context = context;
    this.#policy = policy;
  }

  get hasSpent(): boolean {
    return this.#spent.size > 0;
  }

  get report(): PruneReport {
    return { snapshots: this.#snapshots, sessions: this.#dropped.size };
  }

  /** Removes snapshots of a family, and takes note of sessions that may go as a whole. */
  async prune(folder: string): Promise<void> {
    if (await this.#context.transaction.read(() => this.#needsNothing(folder))) return;
    await this.#remove(folder, async (copy) => {
      this.#note(copy.sessions.values());
      const snapshots: string[] = [];
      for (const session of copy.sessions.values()) {
        const { victims, dropSession } = await this.#select(copy, session, this.#policy);
        if (dropSession) this.#spent.set(sessionKey(session.scope, session.id), folder);
        else for (const id of victims) snapshots.push(id);
      }
      return { sessions: [], snapshots };
    });
  }

  /** Takes note of the sub-agents' sessions of an owner that are out of the scope: the sessions that started them stay. */
  async findOthers(scope: Scope): Promise<void> {
    const { disk } = this.#context.cache;
    const own = scopeFolder(scope);
    for await (const each of scopesOf(disk, ownerFolder(scope.owner))) {
      if (each === own) continue;
      for await (const folder of familiesIn(disk, [each])) {
        const list = new SessionList(disk, folder);
        await readToEnd(this.#context, list, () => this.#note(list.sessions));
      }
    }
  }

  /** Removes the sessions of which nothing would be left, those that others have started first. */
  async dropSpent(): Promise<void> {
    let whole: SeenFamily[] = [];
    const drop = async (): Promise<void> => {
      const some = whole;
      whole = [];
      for (const { folder } of await this.#drop(some)) await this.#dropAgain(folder);
      this.#context.step(0);
      await betweenSteps();
    };
    for (const folder of this.#foldersInOrder()) {
      const pending = new Set(whole.flatMap((family) => family.sessions.map(keyOf)));
      const family = await this.#dropSome(folder, pending);
      if (family !== undefined) whole.push(family);
      if (whole.length >= batch) await drop();
    }
    if (whole.length > 0) await drop();
    if (this.#dropped.size === 0) return;
    await dropRunFiles(this.#context, (scope, id) => this.#dropped.has(sessionKey(scope, id)));
  }

  /** Whether a family that this process knows has nothing that the policy removes; takes note of its sessions then. */
  #needsNothing(folder: string): boolean {
    const { cache } = this.#context;
    const { tables } = cache;
    const tree = cache.trees.get(folder);
    if (tree === undefined || tree.rows.size > manyRows || !tree.refreshSome(portion)) return false;
    const isOld = tree.hasOldReceipts(tables.clock.now() - requestTtl);
    if (!tree.journal.exists || isOld || isUnswept(this.#context, folder)) return false;
    const sessions = [...tree.sessions.values()];
    const isKept = (session: SessionRow): boolean => {
      cache.runFile(session).refresh();
      const { victims, dropSession } = select(tables, session, this.#policy);
      return victims.size === 0 && !dropSession;
    };
    if (!sessions.every(isKept)) return false;
    this.#note(sessions);
    return true;
  }

  /** Removes what is chosen of a family; when that is all of it, only returns it. */
  async #remove(
    folder: string,
    choose: (copy: FamilyCopy) => Promise<Choice>,
  ): Promise<SeenFamily | undefined> {
    const { cache } = this.#context;
    for (let tries = 0; tries < maxTries; tries++) {
      const copy = new FamilyCopy(cache, folder);
      const family = await readToEnd(this.#context, copy, () => {
        copy.readRuns();
        const sessions = [...copy.sessions.values()];
        return seeFamily(cache.disk, { folder, sessions, snapshots: copy.tables.snapshots.size });
      });
      if (!copy.journal.exists || copy.scope === undefined) return undefined;
      const { sessions, snapshots } = await choose(copy);
      if (sessions.length > 0 && sessions.length === copy.sessions.size) return family;
      const rows = sessions.flatMap((session) => allRows(session).map((row) => row.id));
      const gone = {
        sessions: new Set(sessions.map((session) => session.id)),
        snapshots: new Set([...snapshots, ...rows]),
        receipts: oldReceipts(copy, cache.tables.clock.now() - requestTtl),
      };
      if (!(await this.#rewrite(copy, gone))) continue;
      this.#snapshots += gone.snapshots.size;
      for (const session of sessions) this.#dropped.add(keyOf(session));
      return undefined;
    }
    return undefined;
  }

  async #rewrite(copy: FamilyCopy, gone: Gone): Promise<boolean> {
    if (gone.sessions.size + gone.snapshots.size + gone.receipts.size > 0) {
      await markUnswept(this.#context, copy, gone);
      if (!(await rewriteInSteps(this.#context, copy, gone))) return false;
    }
    await sweepInSteps(this.#context, copy);
    return true;
  }

  /** Removes sessions of a family; when all of them may go, only returns it. */
  #dropSome(folder: string, pending: ReadonlySet<string>): Promise<SeenFamily | undefined> {
    const kept = { ...this.#policy, dropSessions: false };
    return this.#remove(folder, async (copy) => {
      const sessions: SessionRow[] = [];
      const snapshots: string[] = [];
      for (const session of copy.sessions.values()) {
        if (await this.#mayGo(copy, session, pending)) sessions.push(session);
        else {
          const { victims } = await this.#select(copy, session, kept);
          for (const id of victims) snapshots.push(id);
        }
      }
      return { sessions, snapshots };
    });
  }

  /** What a policy removes of a session; of a long one it is found out in steps. */
  async #select(
    { tables }: FamilyCopy,
    session: SessionRow,
    policy: RetentionPolicy,
  ): Promise<Selection> {
    const steps = selectSlowly(tables, session, policy);
    for (;;) {
      const { done, value } = steps.next();
      if (done === true) return value;
      this.#context.step(0);
      await betweenSteps();
    }
  }

  /** Whether a session may go: nothing of it would be left, and the sessions of its sub-agents go before it. */
  async #mayGo(
    copy: FamilyCopy,
    session: SessionRow,
    pending: ReadonlySet<string>,
  ): Promise<boolean> {
    const started = this.#started.get(keyOf(session)) ?? [];
    const isGone = (key: string): boolean => this.#dropped.has(key) || pending.has(key);
    if (![...started].every(isGone)) return false;
    return (await this.#select(copy, session, this.#policy)).dropSession;
  }

  /** Removes whole families; returns those that were used since they were looked at. */
  async #drop(families: readonly SeenFamily[]): Promise<readonly SeenFamily[]> {
    const { cache, transaction } = this.#context;
    const started = (family: SeenFamily): readonly string[] =>
      family.sessions.flatMap((session) => [...(this.#started.get(keyOf(session)) ?? [])]);
    const drop = (): readonly SeenFamily[] => {
      // One that was used stays, and so do those that have started its sessions.
      const used = new Set<SeenFamily>();
      const left = new Set<string>();
      for (const family of families) {
        const stays = started(family).some((key) => left.has(key));
        if (!stays && isAsSeen(cache.disk, family)) continue;
        used.add(family);
        for (const session of family.sessions) left.add(keyOf(session));
      }
      dropFamilies(
        cache,
        families.filter((family) => !used.has(family)),
      );
      return [...used];
    };
    const used = await transaction.write(drop, () => {});
    for (const family of families) {
      if (used.includes(family)) continue;
      this.#snapshots += family.snapshots;
      for (const session of family.sessions) this.#dropped.add(keyOf(session));
    }
    return used;
  }

  /** Looks again at a family that was used. */
  async #dropAgain(folder: string): Promise<void> {
    for (let tries = 0; tries < maxTries; tries++) {
      const family = await this.#dropSome(folder, new Set());
      if (family === undefined || (await this.#drop([family])).length === 0) return;
    }
  }

  #note(sessions: Iterable<SeenSession>): void {
    for (const session of sessions) {
      const starter = starterOf(session);
      if (starter === undefined) continue;
      const started = this.#started.get(starter) ?? new Set();
      this.#started.set(starter, started.add(keyOf(session)));
    }
  }

  /** The folders of spent sessions, each once, those of sub-agents' sessions before those that have started them. */
  *#foldersInOrder(): Generator<string, void> {
    const seen = new Set<string>();
    const folders = new Set<string>();
    for (const root of this.#spent.keys()) {
      // Without recursion: sub-agents may have called each other however deep.
      const open: { readonly key: string; readonly left: string[] }[] = [];
      const visit = (key: string): void => {
        if (seen.has(key)) return;
        seen.add(key);
        open.push({ key, left: [...(this.#started.get(key) ?? [])] });
      };
      visit(root);
      for (let top = open.at(-1); top !== undefined; top = open.at(-1)) {
        const next = top.left.pop();
        if (next !== undefined) {
          visit(next);
          continue;
        }
        open.pop();
        const folder = this.#spent.get(top.key);
        if (folder === undefined || folders.has(folder)) continue;
        folders.add(folder);
        yield folder;
      }
    }
  }
}

function keyOf({ scope, id }: SeenSession): string {
  return sessionKey(scope, id);
}

function oldReceipts({ receipts }: SessionTree, before: number): Set<string> {
  const old = [...receipts].filter(([, { at }]) => at <= before);
  return new Set(old.map(([run]) => run));
}
