import { isWaymarkError } from '../../../core/error.ts';
import { isJsonObject, type JsonObject, parseJson } from '../../../core/json/json.ts';
import { checkLine } from '../checked-line.ts';
import type { Disk } from '../disk.ts';

/** A line of an earlier format: its bytes and, if it is not damaged, its content without the checksum. */
export interface OldLine {
  readonly bytes: Buffer;
  readonly content: JsonObject | undefined;
}

/** The paths in a folder, without what a process left unfinished. */
export function namesIn(disk: Disk, folder: string): readonly string[] {
  const names = disk.list(folder).filter((name) => !name.endsWith('.tmp'));
  return names.map((name) => `${folder}/${name}`);
}

/** The lines of a file. An unfinished one at the end is left out. A file with one object need not end with a line feed. */
export function readLines(
  disk: Disk,
  name: string,
  options: { readonly isObject?: boolean } = {},
): readonly OldLine[] {
  const bytes = disk.open(name, ({ size, read }) => read(0, size())) ?? Buffer.alloc(0);
  return Array.from(linesIn(bytes, options), (line) => ({
    bytes: line,
    content: parsed(line, name),
  }));
}

function* linesIn(bytes: Buffer, { isObject = false }): Generator<Buffer, void> {
  let start = 0;
  for (let at = bytes.indexOf('\n'); at >= 0; at = bytes.indexOf('\n', start)) {
    if (at > start) yield bytes.subarray(start, at);
    start = at + 1;
  }
  if (isObject && start < bytes.length) yield bytes.subarray(start);
}

function parsed(line: Buffer, name: string): JsonObject | undefined {
  try {
    const value = parseJson(line.toString('utf8'), name);
    if (!isJsonObject(value)) return undefined;
    const { crc, ...content } = value;
    if (crc !== undefined) checkLine(line, name, 'a line');
    return content;
  } catch (error) {
    if (isWaymarkError(error)) return undefined;
    throw error;
  }
}
