import { crc32 } from 'node:zlib';
import type { SqlValue } from '../sql/database/query.ts';
import { hexOf } from '../sql/values/bytes.ts';

/** The CRC-32 of each byte. */
const table = new Int32Array(256).map((_, byte) => {
  let sum = byte;
  for (let bit = 0; bit < 8; bit++) sum = (sum & 1) === 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  return sum;
});

// A call of the native function takes as long as this many characters.
const short = 64;

/** The checksum of a text. */
export function sumOfText(text: string): number {
  return crc32(text);
}

/**
 * The checksum of values, as the database works it out of their columns: that of the texts that its function `quote` gives. Every turn
 * needs two, mostly of numbers, so the text is not put together.
 */
export function sumOfValues(values: readonly SqlValue[]): number {
  let sum = 0;
  for (let place = 0; place < values.length; place++) sum = withValue(sum, values[place] ?? null);
  return sum;
}

function withValue(sum: number, value: SqlValue): number {
  if (value === null) return withText(sum, 'NULL');
  if (typeof value === 'string') return withText(sum, `'${doubled(value)}'`);
  if (typeof value !== 'number') return withText(sum, `X'${hexOf(value).toUpperCase()}'`);
  return Number.isSafeInteger(value) && value >= 0
    ? withDigits(sum, value)
    : withText(sum, String(value));
}

// Hardly any text has one, and a search costs a fraction of a replacement.
function doubled(text: string): string {
  return text.includes("'") ? text.replaceAll("'", "''") : text;
}

function withText(sum: number, text: string): number {
  if (text.length > short) return crc32(text, sum);
  let rest = ~sum;
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at);
    // It has more than one byte.
    if (character > 127) return crc32(text, sum);
    rest = withByte(rest, character);
  }
  return ~rest >>> 0;
}

const digits = new Uint8Array(16);
const zero = '0'.charCodeAt(0);

function withDigits(sum: number, value: number): number {
  let count = 0;
  let left = value;
  do {
    const tenth = Math.floor(left / 10);
    digits[count++] = left - tenth * 10;
    left = tenth;
  } while (left > 0);
  let rest = ~sum;
  while (count > 0) rest = withByte(rest, zero + (digits[--count] ?? 0));
  return ~rest >>> 0;
}

function withByte(rest: number, byte: number): number {
  return (table[(rest ^ byte) & 255] ?? 0) ^ (rest >>> 8);
}
