import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { waymark } from '../../src/index.ts';
import type { MaintenanceOptions } from '../../src/store/contract/store.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { addSumFunctions } from '../../src/store/sqlite/row-sums.ts';

let folder = '';
let path = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-spend-'));
  path = join(folder, 'test.db');
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const counter = 'A counter of what was spent does not fit its checksum';

interface Spending {
  readonly model?: string;
  readonly tokens?: number;
}

async function spendIn(times: number, { model = 'm', tokens = 3 }: Spending = {}): Promise<void> {
  const store = sqliteStore(path);
  await store.open?.();
  for (let at = 0; at < times; at++) {
    await store.spend?.add({
      agent: 'chat',
      owner: 'ann',
      sessionId: 's',
      entries: [
        {
          agent: 'chat',
          model,
          calls: 1,
          usage: { inputTokens: tokens, totalTokens: tokens, cost: { USD: 9 } },
        },
      ],
    });
  }
  await store.close?.();
}

/** Changes the file as another program would. */
function change(sql: string): void {
  const db = new DatabaseSync(path);
  addSumFunctions(db);
  db.exec(sql);
  db.close();
}

/** Changes a row without its checksum, as a flipped bit does. */
const damage = (sql: string): void => change(`DROP TRIGGER spend_sum_changed; ${sql}`);

async function faults(): Promise<readonly string[]> {
  const store = sqliteStore(path);
  await store.open?.();
  const found = (await store.maintenance?.verify()) ?? [];
  await store.close?.();
  return found.map(({ message }) => message);
}

test('S533 verify finds a changed counter of what was spent, and later turns do not hide it', async () => {
  await spendIn(2);
  expect(await faults()).toEqual([]);
  const db = new DatabaseSync(path);
  const trigger = db.prepare(`SELECT sql FROM sqlite_master WHERE name = 'spend_sum_changed'`).get()
    ?.sql as string;
  db.close();
  damage('UPDATE spend SET micros = micros + 1;');
  change(trigger);
  expect(await faults()).toContainEqual(expect.stringContaining(counter));
  await spendIn(1);
  expect(await faults()).toContainEqual(expect.stringContaining(counter));
});

test('S533 S342 a verify that was stopped finds a changed counter when it continues', async () => {
  const app = waymark({ store: sqliteStore(path) });
  const agent = app.defineCustomAgent({ name: 'chat' }, (session) => session.run(async () => {}));
  await agent.runText('hello');
  await app.close();
  await spendIn(1);
  damage('UPDATE spend SET micros = micros + 1;');
  const store = sqliteStore(path);
  await store.open?.();
  const stop = new AbortController();
  let cursor = '';
  const onProgress: MaintenanceOptions['onProgress'] = (_, progress) => {
    cursor = progress.cursor ?? '';
    stop.abort();
  };
  await expect(
    store.maintenance?.verify({ onProgress, signal: stop.signal }),
  ).rejects.toMatchObject({ status: 'CANCELLED' });
  const found = await store.maintenance?.verify({ cursor });
  await store.close?.();
  expect(found).toContainEqual(
    expect.objectContaining({ message: expect.stringContaining(counter) }),
  );
});

test.each(['owner', 'model', 'total', 'day'])('S533 a changed %s is found', async (column) => {
  await spendIn(1);
  damage(`UPDATE spend SET ${column} = 7;`);
  expect(await faults()).toContainEqual(expect.stringContaining(counter));
});

test('S533 counters of the format before get checksums when the store is opened', async () => {
  await spendIn(2);
  change(`DROP TRIGGER spend_sum_added; DROP TRIGGER spend_sum_changed;
    ALTER TABLE spend DROP COLUMN sum; DROP TABLE reservations; DROP TRIGGER memory_source_removed;
    DROP TABLE memory; DROP TABLE memory_sessions; DROP TABLE memory_notes; DROP TABLE effects;
    UPDATE meta SET format = 10;`);
  await spendIn(1);
  expect(await faults()).toEqual([]);
  const store = sqliteStore(path);
  await store.open?.();
  expect(await store.spend?.total({ owner: 'ann' })).toMatchObject({
    totalTokens: 9,
    cost: { USD: 27 },
  });
  await store.close?.();
  damage('UPDATE spend SET calls = 0;');
  expect(await faults()).toContainEqual(expect.stringContaining(counter));
});

test('S533 a day of a session has one row for each model', async () => {
  await spendIn(3);
  await spendIn(2);
  const db = new DatabaseSync(path);
  const rows = db.prepare('SELECT calls, typeof(day) AS type FROM spend').all();
  db.close();
  expect(rows).toEqual([{ calls: 5, type: 'integer' }]);
});

test('S533 sums by day include rows of earlier versions, which had the time of day', async () => {
  await spendIn(1);
  change('UPDATE spend SET day = day + 0.25');
  await spendIn(1);
  expect(await faults()).toEqual([]);
  const store = sqliteStore(path);
  await store.open?.();
  expect(await store.spend?.sums('day', {})).toMatchObject([{ calls: 2 }]);
  await store.close?.();
});

test.each([
  ["o'neill's", 3],
  ['модель 🦊', 3],
  ['a\0b', 3],
  ['m', 0.1],
  ['m', 1e300],
  ['m', -0],
])(
  'S533 the checksums that statements write are those of the file: %j, %d tokens',
  async (model, tokens) => {
    await spendIn(3, { model, tokens });
    expect(await faults()).toEqual([]);
  },
);
