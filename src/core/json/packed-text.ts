import { toBase64, toBinary } from '../base64.ts';

/*
 * A piece of a data URL as bytes: four characters of base64 are three bytes. The piece may begin and end anywhere, so it is
 * packed by characters of six bits, and may have the beginning of the URL before them and padding behind them:
 *
 *   mark + the number of added characters + 4 × the padding, length of the beginning, the beginning, the bytes
 */

/** The first byte of a packed text is this one or larger. */
export const packedMark = 0x10;
const maxStartLength = 255;

const printable = /^[\x20-\x7e]*$/;
const base64 = /^[A-Za-z0-9+/]+$/;

/** A piece of a data URL as bytes; `undefined` when it is not base64, or not worth it. */
export function packText(text: string): Uint8Array<ArrayBuffer> | undefined {
  const start = text.lastIndexOf(',', maxStartLength - 1) + 1;
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  const digits = text.slice(start, text.length - padding);
  if (!base64.test(digits) || !printable.test(text.slice(0, start))) return undefined;
  const added = (4 - (digits.length % 4)) % 4;
  const bytes = atob(digits + 'A'.repeat(added));
  const packed = new Uint8Array(2 + start + bytes.length);
  packed[0] = packedMark + added + 4 * padding;
  packed[1] = start;
  for (let at = 0; at < start; at++) packed[2 + at] = text.charCodeAt(at);
  for (let at = 0; at < bytes.length; at++) packed[2 + start + at] = bytes.charCodeAt(at);
  return packed;
}

export function unpackText(packed: Uint8Array): string {
  const [head = packedMark, start = 0] = packed;
  const added = (head - packedMark) % 4;
  const padding = Math.floor((head - packedMark) / 4);
  const digits = toBase64(packed.subarray(2 + start));
  return (
    toBinary(packed.subarray(2, 2 + start)) +
    digits.slice(0, digits.length - added) +
    '='.repeat(padding)
  );
}
