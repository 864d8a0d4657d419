import { isWaymarkError } from '../../../core/error.ts';
import { betweenSteps } from '../../rules/between-steps.ts';
import { chunksName, sweepName } from '../directory/layout.ts';
import { type ArtifactNeeds, isDataFile } from '../sessions/artifact-files.ts';
import { portion } from '../sessions/journal.ts';
import type { Gone } from '../sessions/session-tree.ts';
import { batch } from './drop.ts';
import { type FamilyCopy, type MaintenanceContext, readToEnd } from './family-copy.ts';

const noSave = (): void => {};

/**
 * Notes beside a journal that there may be artifacts that nothing needs, before it is rewritten without the snapshots that
 * have them. When the process dies before they are removed, `verify` does not report them, and the next `prune` removes them.
 */
export async function markUnswept(
  { cache: { disk }, transaction }: MaintenanceContext,
  copy: FamilyCopy,
  gone: Gone,
): Promise<void> {
  const ids = [...gone.snapshots];
  if (!ids.some((id) => (copy.rows.get(id)?.artifacts.length ?? 0) > 0)) return;
  await transaction.write(() => {
    // The folder is gone when its sessions were deleted meanwhile.
    if (disk.stamp(copy.journal.name) === undefined) return;
    disk.create(markOf(copy), Buffer.alloc(0), { durable: false });
    disk.note(copy.folder);
  }, noSave);
}

/** Removes the artifacts that nothing in a family needs, a few at a time, if there may be any. */
export async function sweepInSteps(context: MaintenanceContext, copy: FamilyCopy): Promise<void> {
  const { cache, transaction } = context;
  const { disk } = cache;
  if (!isUnswept(context, copy.folder)) return;
  const sweeping = new Sweeping(context, copy, (work) => transaction.write(work, noSave));
  await sweeping.findUnneeded((names) => {
    for (const name of names) disk.unlink(name);
    disk.note(copy.artifacts.folder);
  });
  const isReadable = await readChunks(context, copy);
  await sweeping.end(() => {
    if (isReadable) sweeping.compact();
    disk.unlink(markOf(copy));
    disk.note(copy.folder);
  });
}

/** The files of artifacts that nothing in a family needs. */
export async function unneededFiles(
  context: MaintenanceContext,
  copy: FamilyCopy,
): Promise<readonly string[]> {
  const found: string[] = [];
  const sweeping = new Sweeping(context, copy, (work) => context.transaction.read(work));
  await sweeping.findUnneeded((names) => found.push(...names));
  return found;
}

/** Reads where the chunks are. `false`: they are damaged, so that all of them stay. */
async function readChunks(
  context: MaintenanceContext,
  { artifacts: { chunks } }: FamilyCopy,
): Promise<boolean> {
  try {
    await readToEnd(context, chunks, () => {});
    return true;
  } catch (error) {
    if (isWaymarkError(error) && error.status === 'DATA_LOSS') return false;
    throw error;
  }
}

/** Whether artifacts may be in the folder of a family that nothing needs, and that are about to be removed. */
export function isUnswept({ cache: { disk } }: MaintenanceContext, folder: string): boolean {
  return disk.stamp(`${folder}/${sweepName}`) !== undefined;
}

function markOf({ folder }: FamilyCopy): string {
  return `${folder}/${sweepName}`;
}

/** Which files of artifacts a family needs. */
class Sweeping {
  readonly #context: MaintenanceContext;
  readonly #copy: FamilyCopy;
  readonly #hold: <Result>(work: () => Result) => Promise<Result>;
  /** What the artifacts need that were looked into. */
  readonly #needs = new Map<string, ArtifactNeeds>();
  readonly #files = new Set<string>();
  #isDamaged = false;
  /** The size of the journal when it was last looked at. */
  #size = -1;
  #hashes: ReadonlySet<string> = new Set();
  /** Whether all of them were looked into. */
  #isComplete = false;

  constructor(
    context: MaintenanceContext,
    copy: FamilyCopy,
    hold: <Result>(work: () => Result) => Promise<Result>,
  ) {
    this.#context = context;
    this.#copy = copy;
    this.#hold = hold;
  }

  /** Calls a function, under the lock, with files that are not needed. */
  async findUnneeded(found: (names: readonly string[]) => void): Promise<void> {
    const { folder } = this.#copy.artifacts;
    await readToEnd(this.#context, this.#copy, () => {});
    await this.#inBatches([...hashesIn(this.#copy)], (hashes) => this.#look(hashes));
    await this.#inBatches(await this.#context.cache.disk.listLater(folder), (names) => {
      this.#lookAtRest();
      const unneeded = names.filter((name) => !this.#isNeeded(name));
      found(unneeded.map((name) => `${folder}/${name}`));
    });
  }

  /** Does the last thing, under the lock. */
  end(work: () => void): Promise<void> {
    return this.#inBatches([chunksName], work);
  }

  /** Removes the chunks that are not needed. */
  compact(): void {
    this.#lookAtRest();
    if (this.#isDamaged) return;
    const lists = [...this.#hashes].flatMap((hash) => this.#needs.get(hash)?.lists ?? []);
    this.#copy.artifacts.chunks.keep(new Set(lists));
  }

  async #inBatches(all: readonly string[], work: (some: readonly string[]) => void): Promise<void> {
    for (let at = 0; at < all.length; ) {
      const isDone = await this.#hold(() => {
        if (!this.#isInStep()) return false;
        work(all.slice(at, at + batch));
        return true;
      });
      if (isDone) at += batch;
      this.#context.step(0);
      await betweenSteps();
    }
  }

  /** Takes in what turns have written meanwhile, under the lock; `false`: there is more of it. */
  #isInStep(): boolean {
    if (!this.#copy.refreshSome(portion)) return false;
    const { size } = this.#copy.journal;
    if (size === this.#size) return true;
    this.#size = size;
    this.#hashes = hashesIn(this.#copy);
    this.#isComplete = false;
    return true;
  }

  /** Finds out what artifacts need. */
  #look(hashes: Iterable<string>): void {
    for (const hash of hashes) {
      if (this.#needs.has(hash) || !this.#hashes.has(hash)) continue;
      const needs = this.#copy.artifacts.needsOf(hash);
      // What it needs is not known, so all data stays; `verify` reports it.
      this.#isDamaged ||= needs === undefined;
      this.#needs.set(hash, needs ?? { files: [], lists: [] });
      for (const file of needs?.files ?? []) this.#files.add(file);
    }
  }

  // Those that turns have added.
  #lookAtRest(): void {
    if (!this.#isComplete) this.#look(this.#hashes);
    this.#isComplete = true;
  }

  #isNeeded(name: string): boolean {
    if (name === chunksName) return true;
    if (isDataFile(name)) return this.#isDamaged || this.#files.has(name);
    return name.endsWith('.json') && this.#hashes.has(name.slice(0, -'.json'.length));
  }
}

/** The hashes of the artifacts that the snapshots of a family have. */
function hashesIn({ rows }: FamilyCopy): ReadonlySet<string> {
  const found = new Set<string>();
  for (const { artifacts } of rows.values()) for (const hash of artifacts) found.add(hash);
  return found;
}
