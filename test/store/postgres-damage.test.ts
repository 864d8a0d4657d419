import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { toJson } from '../../src/core/json/json.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import type { Encryption } from '../../src/store/sqlite/index.ts';
import { filled, inflict, outcomeOf } from '../support/damage.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { dataFiles } from '../support/postgres-damage.ts';
import { lifeScopes } from '../support/store-life.ts';
import { type Change, createTurns, toolTurn } from '../support/store-workload.ts';

const rounds = Number(process.env.ROUNDS ?? (process.env.LONG === '1' ? 25 : 20));
const seed = Number(process.env.SEED ?? 1);
const eventsTtl = 10 ** 14;

let postgres: TestPostgres;
beforeAll(async () => {
  // What the server writes by itself would be written over.
  postgres = await startPostgres({ settings: { autovacuum: 'off' } });
});
afterAll(() => postgres.stop());

/** Enough turns for tables of several pages, and a state that Postgres stores apart from its row. */
async function grow(store: Store): Promise<void> {
  const large = toJson({ text: noise(12_000) }, 'custom');
  const change: Change = (state, turn) => {
    const { state: next } = toolTurn(state, turn);
    return { state: turn === 0 ? { ...next, custom: large } : next };
  };
  await createTurns(store, lifeScopes[0]).take(12, change);
}

// Nothing that can be compressed.
function noise(length: number): string {
  let state = 7;
  const next = (): string => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return String.fromCharCode(33 + ((state >>> 16) % 90));
  };
  return Array.from({ length }, next).join('');
}

/** A store that was filled, what it reads as, and its data files. */
async function prepare(schema: string, options: { readonly encryption?: Encryption }) {
  const { connectionString } = postgres;
  const open = () => postgresStore({ connectionString, schema, max: 2, eventsTtl, ...options });
  const store = open();
  await grow(store);
  await store.close?.();
  const before = await filled(open);
  await vacuum(connectionString);
  expect(await outcomeOf(open, before)).toBe('harmless');
  return { open, before, files: await dataFiles(connectionString, schema) };
}

describe('a flipped bit or a cut file', () => {
  test.each([
    ['plain', {}],
    ['encrypted', { encryption: { key: new Uint8Array(32).fill(9) } }],
  ])('S232: is never silent in the data files of a Postgres store, %s', async (schema, options) => {
    const { open, before, files } = await prepare(schema, options);
    const { counts, silent } = await inflict(rounds, seed, async (random) => {
      const what = await files.damage(random);
      const outcome = await outcomeOf(open, before);
      await files.restore();
      return [outcome, what];
    });
    if (process.env.LONG === '1') console.log(expect.getState().currentTestName, counts);
    expect(silent).toEqual([]);
    expect(counts.reported).toBeGreaterThan(0);
    // The files were put back as they were.
    expect(await outcomeOf(open, before)).toBe('harmless');
    await files.close();
  });
});

test('S232: verify reports each table that has lost rows because its file was cut', async () => {
  const { open, files } = await prepare('cut', {});
  const store = open();
  await store.open?.();
  const unnoticed: string[] = [];
  for (const table of files.tables) {
    for (const part of [0, 0.5]) {
      await files.cut(table, part);
      const faults = await store.maintenance?.verify().catch((error: Error) => [error]);
      const isTold = faults?.some(({ message }) => message.includes('damaged')) ?? false;
      if (!isTold) unnoticed.push(`${table} cut to ${part}`);
      await files.restore();
    }
  }
  // Without a key there is nothing to count it by. It has one row, without which the store does not open.
  expect(unnoticed).toEqual(['cut.meta cut to 0', 'cut.meta cut to 0.5']);
  expect(await store.maintenance?.verify()).toEqual([]);
  await store.close?.();
  await files.cut('cut.meta', 0);
  await expect(open().open?.()).rejects.toMatchObject({ status: 'DATA_LOSS' });
  await files.restore();
  await files.close();
});

/** Makes the maps of visible rows and of free space, as autovacuum does. */
async function vacuum(connectionString: string): Promise<void> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  await client.query('VACUUM ANALYZE');
  await client.end();
}
