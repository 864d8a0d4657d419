import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runInThread } from './thread.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'waymark thread #'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('a thread reads a file, and writes to it only if it may', async () => {
  const file = join(folder, 'some 100%.db');
  const db = new DatabaseSync(file);
  db.exec('CREATE TABLE numbers(n); INSERT INTO numbers VALUES(1)');
  const add = 'INSERT INTO numbers VALUES(2)';
  const count = 'SELECT COUNT(*) AS count FROM numbers';
  expect(await runInThread(file, [count])).toEqual([[{ count: 1 }]]);
  expect(await runInThread(file, [add])).toBeUndefined();
  expect(await runInThread(file, [add, count], { writes: true })).toEqual([[], [{ count: 2 }]]);
  db.close();
});

test('a file that is gone meanwhile is not made again', async () => {
  const file = join(folder, 'gone.db');
  expect(await runInThread(file, ['SELECT 1'], { writes: true })).toBeUndefined();
  expect(existsSync(file)).toBe(false);
});
