import { isWaymarkError, WaymarkError } from '../../../core/error.ts';
import type { Artifact } from '../../../protocol/state.ts';
import type { Fault, VerifyOptions } from '../../contract/store.ts';
import type { SessionRow, SnapshotRow } from '../../memory/tables.ts';
import { verifyInSteps } from '../../memory/verify.ts';
import { betweenSteps } from '../../rules/between-steps.ts';
import {
  createFaults,
  createSteps,
  type Faults,
  type Step,
} from '../../rules/maintenance-steps.ts';
import type { DirectoryCache } from '../directory/cache.ts';
import type { Disk } from '../directory/disk.ts';
import { parseSealed } from '../directory/format.ts';
import {
  artifactsName,
  deadFolder,
  eventsFolder,
  requestsFolder,
  runsFolder,
  sessionsFolder,
} from '../directory/layout.ts';
import type { DirectoryTransaction } from '../directory/transaction.ts';
import { parsePointer } from '../sessions/fork-pointer.ts';
import { Journal, type Portion, portion } from '../sessions/journal.ts';
import { SpendCheck } from '../spend-files.ts';
import { batch } from './drop.ts';
import { FamilyCopy, type MaintenanceContext, readToEnd } from './family-copy.ts';
import { familiesIn, scopeFolders } from './folders.ts';
import { SessionList } from './seen-family.ts';
import { isUnswept, unneededFiles } from './sweep-in-steps.ts';

/** Reads the whole store again, a portion at a time, and says what does not fit. */
export async function verify(
  cache: DirectoryCache,
  transaction: DirectoryTransaction,
  options: VerifyOptions | undefined,
): Promise<readonly Fault[]> {
  const cursor = toCursor(options?.cursor);
  const report = createSteps(options);
  const faults = createFaults(options);
  await transaction.open();
  // Where a call that is stopped can be continued: behind the last family that was completed.
  let last = options?.cursor;
  const step: Step = (items) => report(items, last === undefined ? {} : { cursor: last });
  const context = { cache, transaction, step, wait: <Result>(disk: Promise<Result>) => disk };
  const verifying = new Verifying(context, faults);
  for await (const folder of familiesIn(cache.disk, scopeFolders(cache.disk))) {
    if (cursor !== undefined && !isAfter(folder.split('/'), cursor)) continue;
    await verifying.family(folder);
    last = folder;
    step(0);
    await betweenSteps();
  }
  for await (const scope of scopeFolders(cache.disk)) await verifying.pointers(scope);
  await verifying.files(runsFolder, journalCheck);
  await verifying.files(eventsFolder, journalCheck);
  await verifying.files(deadFolder, sealedCheck);
  await verifying.files(requestsFolder, requestCheck);
  for (const name of cache.spend.names()) await verifying.spend(name);
  return faults.found;
}

function toCursor(cursor: string | undefined): readonly string[] | undefined {
  if (cursor === undefined) return undefined;
  const parts = cursor.split('/');
  if (parts.length === 4 && parts[0] === sessionsFolder) return parts;
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    `The cursor ${JSON.stringify(cursor)} is not one that verify of a file store has reported.`,
  );
}

// In the order in which folders are listed, level by level.
function isAfter(parts: readonly string[], cursor: readonly string[]): boolean {
  for (const [level, part] of parts.entries()) {
    const other = cursor[level] ?? '';
    if (part !== other) return part > other;
  }
  return false;
}

/** A check of a file that may take several portions. */
interface FileCheck {
  /** How many bytes were read so far. */
  readonly size: number;
  /** Returns whether it has come to the end. */
  refreshSome(some: Portion): boolean;
  /** What is wrong, at the end. */
  faults(): readonly Fault[];
}

class Verifying {
  readonly #context: MaintenanceContext;
  readonly #faults: Faults;
  /** Forks that were found in families, by folder and session. */
  readonly #forks = new Set<string>();

  constructor(context: MaintenanceContext, faults: Faults) {
    this.#context = context;
    this.#faults = faults;
  }

  /** Reads a session with its forks. */
  async family(folder: string): Promise<void> {
    try {
      this.#faults.add(await this.#family(folder));
    } catch (error) {
      this.#faults.add([{ kind: 'hash', message: messageOf(error) }]);
    }
  }

  async #family(folder: string): Promise<readonly Fault[]> {
    const { disk } = this.#context.cache;
    const copy = new FamilyCopy(this.#context.cache, folder);
    const { name } = copy.journal;
    const { isWhole, hasFile, hasArtifacts, sessions } = await readToEnd(
      this.#context,
      copy,
      () => ({
        isWhole: copy.journal.isWhole,
        hasFile: disk.stamp(name) !== undefined,
        hasArtifacts: disk.stamp(`${folder}/${artifactsName}`) !== undefined,
        sessions: [...copy.sessions.values()],
      }),
    );
    if (!copy.journal.exists && hasFile) return [unfinished(name)];
    // Without a journal nothing has happened in it: it is about to be made, or has just been removed.
    const isEmpty = !hasArtifacts || disk.list(copy.artifacts.folder).length === 0;
    if (!copy.journal.exists && isEmpty) return [];
    if (isWhole && copy.scope === undefined) {
      return [{ kind: 'unreachable', message: `No session belongs in the folder "${folder}".` }];
    }
    for (const { id } of sessions) this.#forks.add(`${folder} ${id}`);
    const chunks = hasArtifacts ? await this.#chunks(copy) : [];
    const runs = await this.#runs(copy, sessions);
    const rows = await this.#rows(copy);
    if (!isWhole) return [unfinished(name), ...runs, ...rows];
    const others = hasArtifacts ? await this.#unreachable(copy) : [];
    return [...runs, ...rows, ...chunks, ...others];
  }

  /** Reads the long texts of artifacts again, those that nothing needs any more included. */
  async #chunks({ artifacts: { chunks } }: FamilyCopy): Promise<readonly Fault[]> {
    try {
      const isWhole = await readToEnd(this.#context, chunks, () => chunks.isWhole);
      return isWhole ? [] : [unfinished(chunks.name)];
    } catch (error) {
      return [{ kind: 'hash', message: messageOf(error) }];
    }
  }

  async #runs(copy: FamilyCopy, sessions: readonly SessionRow[]): Promise<readonly Fault[]> {
    const faults: Fault[] = [];
    for (let at = 0; at < sessions.length; at += batch) {
      await this.#context.transaction.read(() => {
        for (const session of sessions.slice(at, at + batch)) {
          const message = problemOf(() => copy.readRun(session));
          if (message !== undefined) faults.push({ kind: 'run', sessionId: session.id, message });
        }
      });
      if (sessions.length > batch) await this.#pause();
    }
    return faults;
  }

  async #rows(copy: FamilyCopy): Promise<readonly Fault[]> {
    const faults = createFaults();
    const steps = verifyInSteps(copy.tables, faults, artifactReader(copy), (hash) =>
      copy.artifacts.fileProblem(hash),
    );
    for (;;) {
      let snapshots = 0;
      const isDone = await this.#context.transaction.read(() => {
        // What turns have done since belongs to what is verified.
        if (!copy.refreshSome(portion)) return false;
        for (let count = 0; count < batch; count++) {
          const { done, value } = steps.next();
          if (done === true) return true;
          snapshots += value;
        }
        return false;
      });
      this.#context.step(snapshots);
      if (isDone) return faults.found;
      await betweenSteps();
    }
  }

  async #unreachable(copy: FamilyCopy): Promise<readonly Fault[]> {
    if (isUnswept(this.#context, copy.folder)) return [];
    const names = await unneededFiles(this.#context, copy);
    // They were about to be removed.
    if (isUnswept(this.#context, copy.folder)) return [];
    return names.map((name) => ({
      kind: 'unreachable',
      message: `No snapshot has the artifact "${name}".`,
    }));
  }

  /** Checks the pointers to forks in the folder of a scope. */
  async pointers(scope: string): Promise<void> {
    const names = await this.#context.cache.disk.listLater(scope);
    for (const name of names) {
      if (!name.endsWith('.json')) continue;
      this.#faults.add(await this.#pointer(scope, `${scope}/${name}`));
      await this.#pause();
    }
  }

  async #pointer(scope: string, name: string): Promise<readonly Fault[]> {
    const { cache, transaction } = this.#context;
    try {
      const found = await transaction.read(() => parsePointer(cache.disk, name));
      // Its fork was deleted meanwhile.
      if (found === undefined) return [];
      const folder = `${scope}/${found.folder}`;
      if (this.#forks.has(`${folder} ${found.session}`)) return [];
      const list = new SessionList(cache.disk, folder);
      const isLost = await readToEnd(
        this.#context,
        list,
        () =>
          !list.sessions.some(({ id }) => id === found.session) &&
          cache.disk.stamp(name) !== undefined,
      );
      if (!isLost) return [];
      return [{ kind: 'unreachable', message: `"${name}" points to no session.` }];
    } catch (error) {
      return [{ kind: 'unreachable', message: messageOf(error) }];
    }
  }

  /** Checks the files of a folder, as many small ones at a time as are read under one hold of the lock. */
  async files(folder: string, open: (disk: Disk, name: string) => FileCheck): Promise<void> {
    const { cache, transaction } = this.#context;
    const names = await cache.disk.listLater(folder);
    let check: FileCheck | undefined;
    let at = 0;
    const some = (): readonly Fault[] => {
      const found: Fault[] = [];
      let bytes = 0;
      for (let count = 0; count < batch && bytes < portion.bytes && at < names.length; count++) {
        const name = `${folder}/${names[at]}`;
        // A run that has ended meanwhile took its files with it.
        if (cache.disk.stamp(name) === undefined) {
          at++;
          continue;
        }
        check ??= open(cache.disk, name);
        const before = check.size;
        const isDone = check.refreshSome(portion);
        bytes += check.size - before;
        if (!isDone) continue;
        found.push(...check.faults());
        check = undefined;
        at++;
      }
      return found;
    };
    while (at < names.length) {
      this.#faults.add(await transaction.read(some));
      await this.#pause();
    }
  }

  /** Reads a file of what was spent again. */
  async spend(name: string): Promise<void> {
    const check = new SpendCheck(this.#context.cache.disk, name);
    try {
      const isWhole = await readToEnd(this.#context, check, () => check.isWhole);
      if (!isWhole) this.#faults.add([unfinished(name)]);
    } catch (error) {
      this.#faults.add([{ kind: 'hash', message: messageOf(error) }]);
    }
    this.#context.step();
  }

  async #pause(): Promise<void> {
    this.#context.step(0);
    await betweenSteps();
  }
}

/** Reads the artifacts of one snapshot after the other; those of the last one are at hand for the next. */
function artifactReader(copy: FamilyCopy): (row: SnapshotRow) => readonly Artifact[] {
  let recent = new Map<string, Artifact>();
  return ({ id }) => {
    const hashes = copy.rows.get(id)?.artifacts ?? [];
    recent = new Map(hashes.map((hash) => [hash, recent.get(hash) ?? copy.artifacts.read(hash)]));
    return hashes.flatMap((hash) => recent.get(hash) ?? []);
  };
}

function journalCheck(disk: Disk, name: string): FileCheck {
  const journal = new Journal(disk, name, noReader);
  let message: string | undefined;
  return {
    get size() {
      return journal.size;
    },
    refreshSome(some) {
      let isDone = true;
      message = problemOf(() => {
        isDone = journal.refreshSome(some);
      });
      return isDone;
    },
    faults() {
      if (message !== undefined) return [{ kind: 'run', message }];
      return journal.isWhole ? [] : [unfinished(name)];
    },
  };
}

function sealedCheck(disk: Disk, name: string): FileCheck {
  const text = disk.readText(name) ?? '';
  return {
    size: 0,
    refreshSome: () => true,
    faults() {
      const message = problemOf(() => parseSealed(text, name));
      return message === undefined ? [] : [{ kind: 'run', message }];
    },
  };
}

function requestCheck(disk: Disk, name: string): FileCheck {
  const isWhole = disk.readText(name)?.endsWith('\n') === true;
  const check = sealedCheck(disk, name);
  return isWhole ? check : { ...check, faults: () => [unfinished(name)] };
}

const noReader = { reset() {}, head() {}, line() {} };

/** A file that does not end as it was left. */
function unfinished(name: string): Fault {
  const message = `"${name}" ends within a line: a process died while it wrote a change, which was never acknowledged, or the file was cut. Compare it with a backup; the next change of the session replaces the unfinished line.`;
  return { kind: 'unfinished', message };
}

/** Why something cannot be read. */
function problemOf(read: () => unknown): string | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

function messageOf(error: unknown): string {
  if (isWaymarkError(error) && error.status !== 'CANCELLED') return error.message;
  throw error;
}
