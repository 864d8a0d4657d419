import type { IncomingMessage } from 'node:http';
import { WaymarkError } from '../../core/error.ts';

/**
 * A body whose length is not announced may have so many pieces of any size; beyond that they must have so many bytes on
 * average. Each takes some microseconds even if it is a single byte. What a network cuts is larger.
 */
const smallPieces = { most: 1000, bytes: 128 };

/** Refuses a body that comes in too many small pieces. */
export function checkPieces(pieces: number, bytes: number): void {
  if (pieces <= smallPieces.most || bytes >= pieces * smallPieces.bytes) return;
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    `The body came in more than ${smallPieces.most} pieces of less than ${smallPieces.bytes} bytes. Send larger ones.`,
  );
}

/**
 * Joins the pieces of a chunked body that have arrived together. Node reads 64 KB at once, which may be ten thousand pieces,
 * and takes three times as long when each of them goes through a stream. Too many small pieces end the connection.
 */
export function joinPieces(incoming: IncomingMessage): void {
  if (incoming.headers['transfer-encoding'] === undefined) return;
  const push = incoming.push.bind(incoming);
  let waiting: Buffer[] = [];
  let pieces = 0;
  let bytes = 0;
  const flush = (): void => {
    if (waiting.length > 0) push(Buffer.concat(waiting));
    waiting = [];
  };
  incoming.push = (piece: Buffer | null) => {
    if (piece === null) {
      flush();
      return push(null);
    }
    if (incoming.destroyed) return false;
    pieces++;
    bytes += piece.byteLength;
    try {
      checkPieces(pieces, bytes);
    } catch (error) {
      incoming.destroy(error as WaymarkError);
      return false;
    }
    if (waiting.push(piece) === 1) setImmediate(flush);
    // Nothing more is read until the reader of the stream asks for it.
    return false;
  };
}
