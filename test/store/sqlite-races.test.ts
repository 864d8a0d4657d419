import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { raceForTurns, scope, sessionId, takeTurn } from '../support/expired-turn.ts';
import { openRaw } from '../support/raw-sqlite.ts';

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-sqlite-races-'));
  path = join(folder, 'store.db');
});
afterEach(() => rm(folder, { recursive: true }));

test('a session that is taken in the moment in which its slow worker saves continues from what was saved', async () => {
  const stores = Array.from({ length: 4 }, () => sqliteStore(path));
  await raceForTurns(stores, 50);
});

test('a commit goes by what the claim has found, and by what is there when that has changed', async () => {
  const names: string[] = [];
  const store = sqliteStore(path, { onQuery: (name) => names.push(name) });
  const turn = async (text: string, change?: string): Promise<readonly string[]> => {
    await takeTurn(store, text, async () => {
      const db = openRaw(path);
      if (change !== undefined) db.exec(change);
      db.close();
      names.length = 0;
    });
    return names.filter((name) => name === 'commit_unchanged' || name === 'commit_facts');
  };
  expect(await turn('a')).toEqual(['commit_unchanged']);
  expect(await turn('b')).toEqual(['commit_unchanged']);
  const changes = [
    'UPDATE sessions SET next_index = 7',
    'UPDATE runs SET inputs_done = 3',
    'UPDATE snapshots SET parent = NULL WHERE idx = (SELECT max(idx) FROM snapshots)',
  ];
  for (const change of changes) {
    expect(await turn('c', change)).toEqual([
      'commit_unchanged',
      'commit_facts',
      'commit_unchanged',
    ]);
  }
  expect(await turn('d')).toEqual(['commit_unchanged']);
  // As if it had been pruned: there is nothing to continue from.
  const gone = 'UPDATE snapshots SET status = 3 WHERE idx = 10';
  await expect(turn('e', gone)).rejects.toThrow('is not a succeeded snapshot of session "s"');
  const page = await store.timeline?.listSnapshots(scope, sessionId);
  expect(page?.items.map(({ index }) => index)).toEqual([0, 1, 7, 8, 9, 10]);
  await store.close?.();
});
