import { closeSync, fstatSync, openSync } from 'node:fs';
import { type FileHandle, mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { WaymarkError } from '../../core/error.ts';
import { createSha256 } from '../../core/platform.ts';
import type { FileSupport, OpenFile, RunRef, StoredFile } from '../contract/store.ts';
import { notHeld } from '../rules/errors.ts';
import { damagedFile, filePieceLength, inPieces } from '../rules/file-pieces.ts';
import { isSnapshotId } from '../rules/ids.ts';
import type { DirectoryCache } from './directory/cache.ts';
import { diskError } from './directory/disk-error.ts';
import { ifThere } from './directory/file-io.ts';
import { artifactsName, dataName } from './directory/layout.ts';
import type { DirectoryTransaction } from './directory/transaction.ts';

/**
 * Files as files. An upload is written beside the sessions, without the lock. When a snapshot names it, it gets a second name in the
 * folder of the session.
 */
export function fileSupport(cache: DirectoryCache, transaction: DirectoryTransaction): FileSupport {
  const { disk, tables, uploads } = cache;

  const checkRun = (run: RunRef | undefined): void => {
    if (run === undefined) return;
    const { runId, attempt } = run;
    if (isSnapshotId(runId)) cache.refreshRun(runId);
    if (tables.runs.get(runId)?.attempt !== attempt) throw notHeld(runId, attempt);
  };

  return {
    async write({ run }, data) {
      await transaction.read(() => {
        checkRun(run);
      });
      const folder = uploads.folderOf(run?.runId ?? `import-${tables.newId()}`);
      const temporary = `${folder}/${tables.newId()}.tmp`;
      try {
        await mkdir(join(disk.root, folder), { recursive: true });
        const stored = await writeNew(join(disk.root, temporary), data);
        await transaction.write(
          () => {
            checkRun(run);
            disk.rename(temporary, `${folder}/${dataName(stored.hash)}`);
          },
          () => {},
        );
        return stored;
      } catch (error) {
        await rm(join(disk.root, temporary), { force: true }).catch(() => {});
        throw diskError(error, temporary);
      }
    },
    open({ scope, sessionId, runId }, hash) {
      const file = dataName(hash);
      return transaction.read(() => {
        const home = cache.refreshSession(scope, sessionId);
        const folders = [
          ...(home === undefined ? [] : [`${home.tree.folder}/${artifactsName}`]),
          ...(runId !== undefined && isSnapshotId(runId) ? [uploads.folderOf(runId)] : []),
        ];
        for (const folder of folders) {
          const path = join(disk.root, folder, file);
          const size = sizeOf(path, `${folder}/${file}`);
          if (size !== undefined) return opened(path, size, hash);
        }
        return undefined;
      });
    },
  };
}

/** Writes a new file, which is on the disk when this resolves. */
async function writeNew(path: string, data: AsyncIterable<Uint8Array>): Promise<StoredFile> {
  const file = await open(path, 'wx');
  try {
    const sum = createSha256();
    let size = 0;
    for await (const piece of inPieces(data)) {
      sum.update(piece);
      for (let done = 0; done < piece.length; ) {
        done += (await file.write(piece, done, piece.length - done)).bytesWritten;
      }
      size += piece.length;
    }
    await file.sync();
    return { hash: sum.hex(), size };
  } finally {
    await file.close();
  }
}

function sizeOf(path: string, name: string): number | undefined {
  try {
    const fd = ifThere(() => openSync(path, 'r'));
    if (fd === undefined) return undefined;
    try {
      return fstatSync(fd).size;
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    throw diskError(error, name);
  }
}

function opened(path: string, size: number, hash: string): OpenFile {
  return {
    size,
    async *read(from, to) {
      // Once it is open, it can be read to its end, also if its snapshot is deleted meanwhile.
      const file = await open(path, 'r').catch((cause: unknown) => {
        throw goneMeanwhile(hash, cause);
      });
      try {
        const sum = from === 0 && to === size ? createSha256() : undefined;
        for (let at = from; at < to; at += filePieceLength) {
          const length = Math.min(filePieceLength, to - at);
          const piece = await readFully(file, at, length);
          if (piece.length < length) throw damagedFile(hash, 'it is shorter than it was');
          sum?.update(piece);
          // Before the last piece, so that a reader does not take a damaged file for a whole one.
          if (sum !== undefined && at + length === size && sum.hex() !== hash) {
            throw damagedFile(hash, 'its content does not fit its name');
          }
          yield piece;
        }
      } finally {
        await file.close();
      }
    },
  };
}

async function readFully(
  file: FileHandle,
  from: number,
  length: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const piece = new Uint8Array(length);
  let done = 0;
  while (done < length) {
    const { bytesRead } = await file.read(piece, done, length - done, from + done);
    if (bytesRead === 0) break;
    done += bytesRead;
  }
  return piece.subarray(0, done);
}

function goneMeanwhile(hash: string, cause: unknown): WaymarkError {
  return new WaymarkError(
    'NOT_FOUND',
    `The file ${hash} was deleted before it was read: no snapshot has it any more.`,
    { cause },
  );
}
