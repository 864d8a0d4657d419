import type { ServerResponse } from 'node:http';
import { streamOf } from '../../agent/turn/files.ts';

type Pieces = AsyncGenerator<Uint8Array<ArrayBuffer>>;

const sources = new WeakMap<object, Pieces>();

/** The body of a response that is read in pieces, each in separate memory. */
export function streamOfPieces(pieces: Pieces): ReadableStream<Uint8Array<ArrayBuffer>> {
  const stream = streamOf(pieces);
  sources.set(stream, pieces);
  return stream;
}

/** The pieces of a response's body; `undefined` if it was made differently. */
export function piecesOf({ body }: Response): Pieces | undefined {
  return body === null ? undefined : sources.get(body);
}

/** Smaller pieces may share their memory with others. */
const leastFreed = 16_384;

/**
 * Writes a response of pieces to the connection, and frees the memory of each one when it has been written. Left to garbage collection, tens of megabytes
 * of them would pile up, because they are not in the heap that it watches. Throws what reading throws, with the connection cut.
 */
export async function sendPieces(
  outgoing: ServerResponse,
  { status, headers }: Response,
  pieces: Pieces,
): Promise<void> {
  outgoing.writeHead(status, Object.fromEntries(headers));
  try {
    for await (const piece of pieces) {
      if (!(await write(outgoing, piece))) return;
      if (piece.length >= leastFreed) piece.buffer.transfer(0);
    }
    outgoing.end();
  } catch (error) {
    outgoing.destroy();
    throw error;
  }
}

/** Writes a piece. Gives whether it has left this process; it has not if the client has gone. */
function write(outgoing: ServerResponse, piece: Uint8Array): Promise<boolean> {
  return new Promise((resolve) => {
    if (outgoing.destroyed) return resolve(false);
    const gone = (): void => resolve(false);
    outgoing.once('close', gone);
    outgoing.write(piece, (error) => {
      outgoing.off('close', gone);
      resolve(!error);
    });
    return undefined;
  });
}
