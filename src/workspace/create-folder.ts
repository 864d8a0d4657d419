import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { cp, mkdir, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { codeOf, failedPrecondition } from '../core/error.ts';
import type { SkippedPath, TreeSource, WorkspaceFolder } from './contract/contract.ts';
import { metadataFolder } from './contract/paths.ts';
import { diffTrees } from './contract/tree.ts';
import { pathError } from './errors.ts';

interface CreateOptions {
  readonly workspace: string;
  /** A folder whose content is copied first. */
  readonly template?: string | undefined;
  readonly source?: TreeSource | undefined;
  open(path: string): Promise<WorkspaceFolder>;
}

/** Folders that are not complete have this prefix. */
const unfinished = '.waymark-new-';
/** After so long, the process that was making a folder is gone. */
const abandonedMs = 24 * 60 * 60 * 1000;

/** Makes a folder with the files of a tree. It appears once it is complete. */
export async function createFolder(
  path: string,
  { workspace, template, source, open }: CreateOptions,
): Promise<readonly SkippedPath[]> {
  const parent = dirname(path);
  const temporary = join(parent, `${unfinished}${randomUUID()}`);
  try {
    await mkdir(parent, { recursive: true });
    await removeAbandoned(parent);
    await mkdir(temporary);
    if (template !== undefined) {
      await copyTemplate(template, { to: temporary, without: parent }).catch((error: unknown) => {
        throw pathError(error, basename(template), workspace);
      });
    }
    const skipped = source === undefined ? [] : await fill(await open(temporary), source);
    await rm(join(temporary, metadataFolder), { recursive: true, force: true });
    // Elsewhere, a rename replaces an empty folder.
    if (process.platform === 'win32') await rmdir(path).catch(() => {});
    await rename(temporary, path);
    return skipped;
  } catch (error) {
    await rm(temporary, { recursive: true, force: true }).catch(() => {});
    throw pathError(error, '', workspace);
  }
}

async function fill(folder: WorkspaceFolder, source: TreeSource): Promise<readonly SkippedPath[]> {
  const lock = await folder.lock({ runId: 'create' });
  try {
    const { tree } = await folder.scan();
    const additions = diffTrees(tree, source.tree).filter(
      ({ before, after }) => before === null && after?.type !== 'folder',
    );
    const scan = await folder.scan({ include: additions.map(({ path }) => path) });
    return await folder.apply(diffTrees(scan.tree, source.tree), { content: source.content });
  } finally {
    await lock.release();
  }
}

async function copyTemplate(
  template: string,
  { to, without }: { readonly to: string; readonly without: string },
): Promise<void> {
  await mkdir(to, { recursive: true });
  for (const name of await readdir(template)) {
    const from = resolve(template, name);
    if (name === metadataFolder || from === without || name.startsWith(unfinished)) continue;
    await cp(from, join(to, name), {
      recursive: true,
      verbatimSymlinks: true,
      mode: constants.COPYFILE_FICLONE,
      preserveTimestamps: true,
      filter: (each) => resolve(each) !== without && basename(each) !== metadataFolder,
    });
  }
}

async function removeAbandoned(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    if (!name.startsWith(unfinished)) continue;
    const path = join(parent, name);
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }));
    if (mtimeMs < Date.now() - abandonedMs) await rm(path, { recursive: true, force: true });
  }
}

/** Refuses a folder with content, which a checkout would mix with its own. */
export async function checkEmpty(path: string, workspace: string): Promise<void> {
  try {
    if ((await readdir(path)).length === 0) return;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return;
    throw pathError(error, '', workspace);
  }
  throw failedPrecondition('A checkout needs a folder that is empty or does not exist yet.');
}
