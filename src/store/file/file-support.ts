import { mkdir, open, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { WaymarkError } from '../../core/error.ts';
import { createSha256 } from '../../core/platform.ts';
import { isSnapshotId } from '../../protocol/ids.ts';
import type { FileSupport, OpenFile, RunRef, StoredFile } from '../contract/store.ts';
import { currentRun, findSession } from '../memory/tables.ts';
import { damagedFile, filePieceLength, inPieces } from '../rules/file-pieces.ts';
import type { Directory } from './directory.ts';
import { diskError } from './disk.ts';
import { fileName } from './layout.ts';
import { homeOf } from './session-tree.ts';
import type { Transaction } from './transaction.ts';

/** Files that are written and read in pieces. Uploads are written without the lock. */
export function fileSupport(directory: Directory, transaction: Transaction): FileSupport {
  const { disk, tables, files } = directory;

  const checkRun = (run: RunRef | undefined): void => {
    if (run !== undefined) currentRun(tables, run);
  };
  return {
    async write({ run }, data) {
      await transaction.read(() => checkRun(run));
      const folder = files.uploadsOf(run?.runId ?? `import-${tables.newId()}`);
      const temporary = `${folder}/${tables.newId()}.tmp`;
      const path = join(disk.root, temporary);
      try {
        await mkdir(dirname(path), { recursive: true });
        const stored = await writeNew(path, data);
        await transaction.write(() => {
          checkRun(run);
          disk.rename(temporary, `${folder}/${fileName(stored.hash)}`);
        });
        return stored;
      } catch (error) {
        await rm(path, { force: true }).catch(() => {});
        throw diskError(error, temporary);
      }
    },
    open({ scope, sessionId, runId }, hash) {
      return transaction.read(() => {
        const session = findSession(tables, scope, sessionId);
        const tree = session && homeOf(session);
        const ofTree = tree && files.nameIn(tree, hash);
        const isRun = runId !== undefined && isSnapshotId(runId);
        const ofRun = isRun ? `${files.uploadsOf(runId)}/${fileName(hash)}` : undefined;
        for (const name of [ofTree, ofRun].filter((each) => each !== undefined)) {
          const size = disk.stat(name)?.size;
          if (size !== undefined) return opened(join(disk.root, name), size, hash);
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
    const counted = async function* (): AsyncGenerator<Uint8Array> {
      for await (const piece of inPieces(data)) {
        sum.update(piece);
        size += piece.length;
        yield piece;
      }
    };
    await file.writeFile(counted());
    await file.sync();
    return { hash: sum.hex(), size };
  } finally {
    await file.close();
  }
}

function opened(path: string, size: number, hash: string): OpenFile {
  return {
    size,
    async *read(from, to) {
      // Once it is open, it can be read to its end, even if its snapshot is deleted meanwhile.
      const file = await open(path, 'r').catch((cause: unknown) => {
        throw deletedMeanwhile(hash, cause);
      });
      try {
        const sum = from === 0 && to === size ? createSha256() : undefined;
        for (let at = from; at < to; at += filePieceLength) {
          const length = Math.min(filePieceLength, to - at);
          const { bytesRead, buffer } = await file.read(new Uint8Array(length), 0, length, at);
          if (bytesRead < length) throw damagedFile(hash, 'it is shorter than it was');
          sum?.update(buffer);
          // Before the last piece, so that a client does not mistake a damaged file for a whole one.
          if (sum !== undefined && at + length === size && sum.hex() !== hash) {
            throw damagedFile(hash, 'its content does not fit its name');
          }
          yield buffer;
        }
      } finally {
        await file.close();
      }
    },
  };
}

function deletedMeanwhile(hash: string, cause: unknown): WaymarkError {
  return new WaymarkError(
    'NOT_FOUND',
    `The file ${hash} was deleted before it was read: no snapshot has it any more.`,
    { cause },
  );
}
