import { createSha256, letOthersRun } from '../../core/platform.ts';
import type { FileSupport, OpenFile } from '../contract/store.ts';
import { damagedFile, inPieces, neededPieces } from '../rules/file-pieces.ts';
import { type FileHead, pieceMark, readHead, readPiece } from './content/files.ts';
import { finishUpload, writePiece } from './content/uploads.ts';
import type { SqlContext } from './sql-context.ts';
import { hexOf } from './values/bytes.ts';

/** Files in pieces: a transaction for each, so that none is in memory, or locks anything, as a whole. */
export function fileSupport(context: SqlContext): FileSupport {
  const { db, cipher, uploading } = context;
  return {
    async write({ run }, data) {
      if (run !== undefined) uploading.add(run.runId);
      const sum = createSha256();
      const pieces: string[] = [];
      let size = 0;
      // What is written before an error goes with the run.
      for await (const piece of inPieces(data, 1)) {
        sum.update(piece);
        size += piece.length;
        const marked = new Uint8Array(piece.buffer, 0, 1 + piece.length);
        marked[0] = pieceMark;
        // The row of the file makes them last.
        const write = () => writePiece(run, marked, cipher);
        pieces.push(hexOf(await db.write(write, { durable: false })));
        // SQLite works on this thread.
        await letOthersRun();
      }
      const hash = sum.hex();
      await db.write(() => finishUpload(run, hash, { size, pieces }, cipher));
      return { hash, size };
    },
    async open(_place, hash) {
      const head = await db.read(() => readHead(hash, cipher));
      return head && opened(context, hash, head);
    },
  };
}

function opened({ db, cipher }: SqlContext, hash: string, head: FileHead): OpenFile {
  return {
    size: head.size,
    async *read(from, to) {
      const sum = from === 0 && to === head.size ? createSha256() : undefined;
      for (const needed of neededPieces(from, to)) {
        const piece = await db.read(() => readPiece(hash, head, needed.number, cipher));
        await letOthersRun();
        sum?.update(piece);
        const isLast = sum !== undefined && needed.number === head.pieces.length - 1;
        // Before the last piece, so that a reader does not take a damaged file for a whole one.
        if (isLast && sum.hex() !== hash)
          throw damagedFile(hash, 'its content does not fit its hash');
        yield piece.subarray(needed.from, needed.to) as Uint8Array<ArrayBuffer>;
      }
    },
  };
}
