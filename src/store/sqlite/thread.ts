import { Worker } from 'node:worker_threads';
import { throwIfAborted } from '../../core/async/signal.ts';
import type { SqlValue } from '../sql/database/query.ts';
import { rowSum } from './row-sums.ts';

type Rows = readonly Readonly<Record<string, SqlValue>>[];

// Text, because a bundle has no file for a thread to load.
const code = `
  const { parentPort, workerData } = require('node:worker_threads');
  const { DatabaseSync } = require('node:sqlite');
  const { pathToFileURL } = require('node:url');
  const { crc32 } = require('node:zlib');
  const { file, readOnly, rowSum, statements } = workerData;
  // A file that is gone meanwhile is not made again.
  const address = pathToFileURL(file);
  address.searchParams.set('mode', readOnly ? 'ro' : 'rw');
  const db = new DatabaseSync(address, { readOnly, timeout: 10_000 });
  db.function(rowSum, { deterministic: true }, (row) => crc32(String(row)));
  const results = statements.map((sql) => db.prepare(sql).all());
  db.close();
  parentPort.postMessage(results);
`;

/**
 * Runs statements on a whole file in a thread of their own, because SQLite cannot cut them into steps: its check of a file, and
 * writing its log back. They may change the file only with `writes`. Gives `undefined` where no such thread can be started, or if one of them fails.
 */
export async function runInThread(
  file: string,
  statements: readonly string[],
  {
    signal,
    writes = false,
  }: { readonly signal?: AbortSignal | undefined; readonly writes?: boolean } = {},
): Promise<readonly Rows[] | undefined> {
  throwIfAborted(signal);
  const ended = new AbortController();
  let thread: Worker | undefined;
  try {
    return await new Promise<readonly Rows[] | undefined>((resolve) => {
      thread = startThread({ file, readOnly: !writes, rowSum, statements });
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
