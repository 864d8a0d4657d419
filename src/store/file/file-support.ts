import { mkdir, open, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { WaymarkError } from '../../core/error.ts';
import { createSha256 } from '../../core/platform.ts';
import { isSnapshotId } from '../../protocol/ids.ts';
import type { FileSupport, OpenFile, RunRef, StoredFile } from '../contract/store.ts';
import { currentRun, findSession } from '../memory/tables.ts';
import { damagedFile, filePieceLength, hashOfBytes, inPieces } from '../rules/file-pieces.ts';
import type { Directory } from './directory.ts';
import { diskError } from './disk.ts';
import { hashIn, namesIn } from './files.ts';
import { fileName, nodeName } from './layout.ts';
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
        const own = runId !== undefined && isSnapshotId(runId) ? runId : undefined;
        const ofSession = tree === undefined ? [] : [files.nameIn(tree, hash)];
        for (const name of [...ofSession, ...files.inTrees(tree, own, fileName(hash))]) {
          const size = disk.stat(name)?.size;
          if (size !== undefined) return opened(join(disk.root, name), size, hash);
        }
        return undefined;
      });
    },
    async writeTree({ run, scope }, { nodes, contents }) {
      const folder = files.uploadsOf(run?.runId ?? `import-${tables.newId()}`);
      await transaction.read(() => checkRun(run));
      const written = new Map<string, string>();
      const write = async (bytes: Uint8Array, nameOf: (hash: string) => string): Promise<void> => {
        const temporary = `${folder}/${tables.newId()}.tmp`;
        written.set(nameOf(hashOfBytes(bytes)), temporary);
        await writeBytes(join(disk.root, temporary), bytes);
      };
      try {
        await mkdir(join(disk.root, folder), { recursive: true });
        await Promise.all([
          ...nodes.map((bytes) => write(bytes, nodeName)),
          ...contents.map((bytes) => write(bytes, fileName)),
        ]);
        return await transaction.write(() => {
          checkRun(run);
          const tree = run && homeOf(currentRun(tables, run).session);
          const isThere = (name: string): boolean =>
            written.has(name) ||
            files.inTrees(tree, undefined, name).some((each) => disk.stat(each) !== undefined);
          const named = new Set(nodes.flatMap(namesIn));
          const others = [...named].filter((name) => !isThere(name));
          const missing = files.bring(folder, others, scope);
          if (missing.length > 0) return missing.map(hashIn);
          for (const [name, temporary] of written) disk.rename(temporary, `${folder}/${name}`);
          return [];
        });
      } catch (error) {
        throw diskError(error, folder);
      } finally {
        for (const temporary of written.values()) {
          await rm(join(disk.root, temporary), { force: true }).catch(() => {});
        }
      }
    },
    readTree({ scope, sessionId, runId }, hashes) {
      return transaction.read(() => {
        const session = findSession(tables, scope, sessionId);
        const tree = session && homeOf(session);
        const own = runId !== undefined && isSnapshotId(runId) ? runId : undefined;
        return hashes.map((hash) => files.readTree(tree, own, hash));
      });
    },
  };
}

async function writeBytes(path: string, bytes: Uint8Array): Promise<void> {
  const file = await open(path, 'wx');
  try {
    await file.writeFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
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
