import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { open, realpath } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { hasStatus, WaymarkError } from '../core/error.ts';
import { applyChanges, isUnfinished, recoverFolder } from './apply.ts';
import type { WorkspaceFolder } from './contract/contract.ts';
import { checkRelative, isPrivate } from './contract/paths.ts';
import { changedMeanwhile, pathError } from './errors.ts';
import { execute } from './execute.ts';
import { readFlags } from './hash-file.ts';
import { folderLock } from './lease.ts';
import type { ScanLimits } from './scan-run.ts';
import { createScanner, makeMetadataFolder } from './scanner.ts';

/** Settings of a folder on this machine. */
export interface FolderSettings {
  readonly workspace: string;
  readonly limits: ScanLimits;
  /** Absolute paths that are no part of the tree. */
  readonly exclude: readonly string[];
  readonly leaseMs?: number | undefined;
}

/** Opens a folder on this machine that exists. */
export async function openFolder(path: string, settings: FolderSettings): Promise<WorkspaceFolder> {
  const { workspace, leaseMs } = settings;
  const root = prepareFolder(path, workspace);
  const scanner = createScanner({ ...settings, root });
  const lock = folderLock(root, { workspace, ...(leaseMs !== undefined && { leaseMs }) });
  const recover = (): Promise<void> => scanner.change(() => recoverFolder({ root, workspace }));
  const folder: WorkspaceFolder = {
    id: root,
    path: root,
    scan: (options) => scanner.scan(options),
    read: (file, options = {}) => readPieces(root, file, { ...options, workspace }),
    apply: (changes, options) =>
      scanner.change(() =>
        applyChanges(
          { root, workspace, checkLock: lock.check, known: scanner.known },
          changes,
          options,
        ),
      ),
    execute: (command, options) => execute(command, { ...options, cwd: root, workspace }),
    async lock(owner, options) {
      const held = await lock.acquire(owner, options).catch((error: unknown) => {
        throw pathError(error, '', workspace);
      });
      try {
        await recover();
      } catch (error) {
        await held.release();
        throw error;
      }
      return {
        lost: held.lost,
        async release() {
          if (!held.lost.aborted) await scanner.save();
          await held.release();
        },
      };
    },
  };
  if (isUnfinished(root)) await recoverIfFree(folder);
  return folder;
}

function prepareFolder(path: string, workspace: string): string {
  try {
    const root = realpathSync(path);
    makeMetadataFolder(root);
    return root;
  } catch (error) {
    throw pathError(error, '', workspace);
  }
}

/** Recovers a folder whose process has died. Where one is alive, it completes its change itself. */
async function recoverIfFree(folder: WorkspaceFolder): Promise<void> {
  try {
    const lock = await folder.lock({ runId: 'recovery' });
    await lock.release();
  } catch (error) {
    if (!hasStatus(error, 'ABORTED')) throw error;
  }
}

const pieceBytes = 256 * 1024;

async function* readPieces(
  root: string,
  path: string,
  { hash, workspace }: { readonly hash?: string; readonly workspace: string },
): AsyncGenerator<Uint8Array> {
  const expected = hash === undefined ? undefined : createHash('sha256');
  try {
    // No part of the real path is a link.
    const file = await open(await realPathIn(root, path, workspace), readFlags);
    try {
      const stat = await file.stat();
      if (!stat.isFile()) throw notAFile(path, workspace);
      // One byte more than there is shows the end without another read.
      const length = Math.min(stat.size + 1, pieceBytes);
      for (let isMore = true; isMore; ) {
        const { buffer, bytesRead } = await file.read(Buffer.allocUnsafeSlow(length));
        isMore = bytesRead === length;
        if (bytesRead === 0) break;
        const piece = buffer.subarray(0, bytesRead);
        expected?.update(piece);
        yield piece;
      }
    } finally {
      await file.close();
    }
  } catch (error) {
    throw pathError(error, path, workspace);
  }
  if (expected !== undefined && expected.digest('hex') !== hash) {
    throw changedMeanwhile(path, workspace);
  }
}

/** Where a path leads, which must be in the folder and no secret. */
async function realPathIn(root: string, path: string, workspace: string): Promise<string> {
  checkRelative(path);
  const real = await realpath(join(root, path));
  const inside = relative(root, real).split(sep).join('/');
  const isOutside = inside === '..' || inside.startsWith('../') || join(root, inside) !== real;
  if (!isOutside && !isPrivate(inside) && !isPrivate(path)) return real;
  throw new WaymarkError(
    'PERMISSION_DENIED',
    `${JSON.stringify(path)} in workspace "${workspace}" cannot be read: ${isOutside ? 'it leads out of the folder' : 'secrets and the data of git and of the workspace stay private'}.`,
  );
}

function notAFile(path: string, workspace: string): WaymarkError {
  return new WaymarkError(
    'FAILED_PRECONDITION',
    `${JSON.stringify(path)} in workspace "${workspace}" is no regular file.`,
  );
}
