import { appendFile, open, readFile, truncate } from 'node:fs/promises';
import { failedPrecondition } from '../core/error.ts';
import { jsonIn } from '../core/json/json.ts';
import type { SkippedTurn } from './recorded-session.ts';
import type { TurnReport } from './report.ts';

export type ResultLine =
  | { readonly format: 1; readonly replay: string }
  | { readonly turn: TurnReport }
  | { readonly skipped: SkippedTurn }
  /** All turns of a session are done. */
  | { readonly session: string };

/** Opens a file with the results of a replay, written as they come, or begins one. A line that a killed process left unfinished is removed. */
export async function openResults(path: string, replay: string) {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  const end = text.lastIndexOf('\n') + 1;
  const lines = text
    .slice(0, end)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => jsonIn(line, `${path} is not the results file of a replay.`) as ResultLine);
  if (end < text.length) await truncate(path, Buffer.byteLength(text.slice(0, end)));
  const [header] = lines;
  let writing: Promise<void> = Promise.resolve();
  const add = (line: ResultLine): Promise<void> => {
    writing = writing.then(() => appendFile(path, `${JSON.stringify(line)}\n`));
    return writing;
  };
  if (header === undefined) {
    await (await open(path, 'a')).close();
    await add({ format: 1, replay });
  } else if (!('replay' in header) || header.replay !== replay) {
    throw failedPrecondition(
      `${path} has the results of another replay: other sessions, changes or options. Use another file, or delete this one.`,
    );
  }
  return { earlier: lines.slice(1), add };
}
