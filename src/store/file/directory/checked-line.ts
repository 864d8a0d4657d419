import { crc32 } from 'node:zlib';
import { dataLoss } from './disk-error.ts';

/*
 * Every line ends with the checksum of its other bytes, as its last field: `{…,"crc":"1a2b3c4d"}`. So a file of lines is
 * still JSON lines, and a changed bit anywhere in a line shows.
 */
const mark = ',"crc":"';
const digits = 8;
const tailLength = mark.length + digits + 2;

/** An object as a line with its checksum, without the line feed. */
export function toLine(content: object): string {
  const text = JSON.stringify(content);
  return `${text.slice(0, -1)}${mark}${sumOf(text)}"}`;
}

/** Whether a line says what its checksum is. */
function hasSum(line: Buffer): boolean {
  const at = line.length - tailLength;
  return at > 0 && line.toString('latin1', at, at + mark.length) === mark;
}

/** Checks a line, without its line feed, against its checksum. Before format 2 lines had none. */
export function checkLine(line: Buffer, name: string, place: string, needsSum: boolean): void {
  if (!hasSum(line)) {
    if (needsSum) throw dataLoss(name, `${place} has no checksum`);
    return;
  }
  const at = line.length - tailLength;
  const given = line.toString('latin1', at + mark.length, line.length - 2);
  const text = Buffer.concat([line.subarray(0, at), Buffer.from('}')]);
  const isWhole = line.toString('latin1', line.length - 2) === '"}';
  if (!isWhole || sumOf(text) !== given) throw dataLoss(name, `${place} does not fit its checksum`);
}

/** A line of an older format with its checksum. */
export function withSum(line: Buffer): Buffer {
  if (hasSum(line)) return line;
  const end = `${mark}${sumOf(line)}"}`;
  return Buffer.concat([line.subarray(0, -1), Buffer.from(end)]);
}

function sumOf(text: string | Buffer): string {
  return crc32(text).toString(16).padStart(digits, '0');
}
