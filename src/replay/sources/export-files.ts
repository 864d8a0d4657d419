import { createReadStream } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { WaymarkError } from '../../core/error.ts';
import type { SessionExport } from '../../session/export-session.ts';
import type { FoundSession } from './session-source.ts';

/** Whether a text is the path of a file or folder that exists. */
export async function isPath(text: string): Promise<boolean> {
  return await stat(text).then(
    () => true,
    () => false,
  );
}

/** The sessions of an export file (a document, or one for each line) or of the files in a folder. */
export async function* exportsAt(path: string): AsyncGenerator<FoundSession> {
  if ((await stat(path)).isDirectory()) {
    const names = (await readdir(path)).filter((name) => /\.jsonl?$/.test(name)).toSorted();
    for (const name of names) yield* exportsAt(join(path, name));
    return;
  }
  if (!path.endsWith('.jsonl')) {
    const text = await readFile(path, 'utf8');
    if (!isLines(text)) {
      yield { name: path, read: async () => parse(text, path) };
      return;
    }
  }
  const lines = createInterface({ input: createReadStream(path), crlfDelay: Infinity });
  let count = 0;
  for await (const line of lines) {
    const name = `${path}:${++count}`;
    if (line.trim() !== '') yield { name, read: async () => parse(line, name) };
  }
}

/** Whether a text is several documents: the first line is a whole one, and others follow. */
function isLines(text: string): boolean {
  const end = text.indexOf('\n');
  if (end < 0 || text.slice(end).trim() === '') return false;
  try {
    JSON.parse(text.slice(0, end));
    return true;
  } catch {
    return false;
  }
}

function parse(text: string, name: string): SessionExport {
  try {
    // Its shape is checked when it is read.
    return JSON.parse(text) as SessionExport;
  } catch (cause) {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      `${name} is not JSON. Expected an exported session.`,
      {
        cause,
      },
    );
  }
}
