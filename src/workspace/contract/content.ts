import { WaymarkError } from '../../core/error.ts';

/** A file has more bytes than were asked for. */
export class TooLarge extends WaymarkError {
  constructor(maxBytes: number) {
    super('RESOURCE_EXHAUSTED', `The file has more than ${maxBytes} bytes.`);
  }
}

/** The whole content of a small file. RESOURCE_EXHAUSTED if it is larger than the limit. */
export async function bytesOf(
  pieces: AsyncIterable<Uint8Array>,
  maxBytes = Number.POSITIVE_INFINITY,
): Promise<Uint8Array> {
  const all: Uint8Array[] = [];
  let size = 0;
  for await (const piece of pieces) {
    size += piece.length;
    if (size > maxBytes) throw new TooLarge(maxBytes);
    all.push(piece);
  }
  const [first] = all;
  if (first?.length === size) return first;
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const piece of all) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
