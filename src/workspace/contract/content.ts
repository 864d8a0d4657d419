import { WaymarkError } from '../../core/error.ts';

/** The whole content of a small file. RESOURCE_EXHAUSTED if it is larger than the limit. */
export async function bytesOf(
  pieces: AsyncIterable<Uint8Array>,
  maxBytes = Number.POSITIVE_INFINITY,
): Promise<Uint8Array> {
  const all: Uint8Array[] = [];
  let size = 0;
  for await (const piece of pieces) {
    size += piece.length;
    if (size > maxBytes) {
      throw new WaymarkError('RESOURCE_EXHAUSTED', `The file has more than ${maxBytes} bytes.`);
    }
    all.push(piece);
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const piece of all) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
