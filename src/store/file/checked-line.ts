import { crc32 } from 'node:zlib';
import { isJsonObject, type Json, type JsonObject, parseJson } from '../../core/json/json.ts';
import { storeFault } from '../rules/errors.ts';
import { dataLoss } from './disk.ts';

/** The format that this version reads and writes; `convert/` upgrades earlier ones. */
export const format = 6;

/*
 * Every line ends with the checksum of its other bytes, as its last field: `{…,"crc":"1a2b3c4d"}`. So a file of lines is
 * still JSON lines, and a changed bit anywhere in a line shows.
 */
const mark = ',"crc":"';
const digits = 8;

/** Length of the end of a line, which has its checksum. */
export const tailLength: number = mark.length + digits + 2;

/** An object as a line with its checksum, without the line feed. */
export function toLine(content: object): string {
  const text = JSON.stringify(content);
  return `${text.slice(0, -1)}${mark}${hex(crc32(text))}"}`;
}

/** Checks a line, without its line feed, against its checksum. */
export function checkLine(line: Buffer, name: string, place: string): void {
  const at = line.length - tailLength;
  const tail = at > 0 ? line.toString('latin1', at) : '';
  if (!tail.startsWith(mark)) throw dataLoss(name, `${place} has no checksum`);
  const sum = hex(crc32('}', crc32(line.subarray(0, at))));
  if (tail !== `${mark}${sum}"}`) throw dataLoss(name, `${place} does not fit its checksum`);
}

/** Parses a line that has been checked. */
export function parseLine(line: Buffer, name: string, place: string): JsonObject {
  let value: Json;
  try {
    value = parseJson(line.toString('utf8'), place);
  } catch (cause) {
    throw dataLoss(name, `${place} is not JSON`, cause);
  }
  if (!isJsonObject(value)) throw dataLoss(name, `${place} is no object`);
  return value;
}

/** The format in the `waymark` field that every file of the store begins with. */
export function formatOf(head: JsonObject, name: string): number {
  if (typeof head.waymark !== 'number') {
    throw dataLoss(name, 'it does not say which format it has');
  }
  return head.waymark;
}

/** Refuses a file of another format. */
export function checkFormat(head: JsonObject, name: string): void {
  const found = formatOf(head, name);
  if (found === format) return;
  const remedy =
    found > format
      ? 'Install a newer version.'
      : 'A process with an older version wrote it after the store was upgraded. Stop that process and remove the file.';
  throw storeFault(
    'FAILED_PRECONDITION',
    `"${name}" of the file store has format ${found}; this version of waymark reads format ${format}. ${remedy}`,
    { details: { format: found, supported: format } },
  );
}

/** The content of a file with one line, checked. */
export function parseFile(text: string, name: string): JsonObject {
  const line = Buffer.from(text.endsWith('\n') ? text.slice(0, -1) : text);
  const content = parseLine(line, name, 'its content');
  checkFormat(content, name);
  checkLine(line, name, 'its content');
  return content;
}

function hex(sum: number): string {
  return sum.toString(16).padStart(digits, '0');
}
