import { Worker } from 'node:worker_threads';
import { throwIfAborted } from '../../core/async/signal.ts';
import type { SqlValue } from '../sql/database/query.ts';
import { rowSum } from './row-sums.ts';

type Rows = readonly Readonly<Record<string, SqlValue>>[];

// Text, because a bundle has no file for a thread to load.
const code = `
  const { parentPort, workerData } = require('node:worker_threads');
  const { DatabaseSync } = require('node:sqlite');
  const { crc32 } = require('node:zlib');
  const { file, rowSum, statements } = workerData;
  const db = new DatabaseSync(file, { readOnly: true, timeout: 10_000 });
  db.function(rowSum, { deterministic: true }, (row) => crc32(String(row)));
  const results = statements.map((sql) => db.prepare(sql).all());
  db.close();
  parentPort.postMessage(results);
`;

/**
 * Runs statements that read a whole file in a thread of their own: SQLite's check of a file cannot be cut into steps. Gives
 * `undefined` where no such thread can be started.
 */
export async function runInThread(
  file: string,
  statements: readonly string[],
  signal: AbortSignal | undefined,
): Promise<readonly Rows[] | undefined> {
  throwIfAborted(signal);
  const ended = new AbortController();
  let thread: Worker | undefined;
  try {
    return await new Promise<readonly Rows[] | undefined>((resolve) => {
      thread = startThread({ file, rowSum, statements });
      if (thread === undefined) return resolve(undefined);
      thread.once('message', (results: readonly Rows[]) => resolve(results));
      thread.once('error', () => resolve(undefined));
      thread.once('exit', () => resolve(undefined));
      signal?.addEventListener('abort', () => resolve(undefined), { signal: ended.signal });
    });
  } finally {
    ended.abort();
    // Ends as soon as SQLite returns; nothing waits for it.
    void thread?.terminate();
    throwIfAborted(signal);
  }
}

// Not every process may have threads: `node --permission` refuses them.
function startThread(workerData: object): Worker | undefined {
  try {
    // Only this code runs in it, whatever the process was started with, and it prints nothing.
    const options = { execArgv: [], env: {}, stdout: true, stderr: true };
    return new Worker(code, { eval: true, workerData, ...options });
  } catch {
    return undefined;
  }
}
