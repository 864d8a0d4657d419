import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pgliteStore } from '../../src/store/pglite/index.ts';
import { storeContract } from '../../src/testing/store-contract/store-contract.ts';
import { pgliteSchemas } from '../support/pglite.ts';
import { createTurns, plainTurn } from '../support/store-workload.ts';

let schemas: Awaited<ReturnType<typeof pgliteSchemas>>;
beforeAll(async () => {
  schemas = await pgliteSchemas();
});
afterAll(() => schemas.close());

storeContract('PGlite', () => schemas.open(), { runs: 2 });

describe('a PGlite database', () => {
  test('that is none, or has a wrong schema name, is refused', () => {
    expect(() => pgliteStore(undefined as never)).toThrow('new PGlite');
    expect(() => pgliteStore({} as never)).toThrow('new PGlite');
    expect(() => pgliteStore(schemas.db, { schema: 'a b' })).toThrow('not a schema name');
    expect(() => pgliteStore(schemas.db, { scheme: 'a' } as never)).toThrow('Did you mean');
  });

  test('of a newer version says what to do', async () => {
    const { store, close } = await schemas.open();
    await store.open?.();
    await store.close?.();
    const change = (by: number) =>
      schemas.db.query('UPDATE waymark.meta SET format = format + $1', [by]);
    await change(98);
    await expect(pgliteStore(schemas.db).open?.()).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
      message: expect.stringMatching(/format \d+.*Update waymark/),
    });
    await change(-98);
    await close();
  });

  test('can be used by the app at the same time, and loses nothing in a transaction of the store that fails', async () => {
    const { store, close } = await schemas.open();
    const turns = createTurns(store);
    await schemas.db.exec('CREATE TABLE orders(n integer)');
    const order = (n: number) => schemas.db.query('INSERT INTO orders VALUES($1)', [n]);
    // Some of the transactions between which these are written fail.
    const failing = Array.from({ length: 20 }, async (_, n) => {
      const label = store.timeline?.updateSession(turns.scope, `none ${n}`, { title: 'x' });
      await Promise.all([label?.catch(() => {}), order(n)]);
    });
    await Promise.all([turns.take(5, plainTurn), ...failing]);
    const { rows } = await schemas.db.query('SELECT n FROM orders');
    expect(rows).toHaveLength(20);
    await schemas.db.exec('DROP TABLE orders');
    const read = await store.getSnapshot(turns.scope, { sessionId: turns.sessionId });
    expect(read?.state?.messages).toHaveLength(10);
    await close();
  });

  test('keeps what a store that was closed has written', async () => {
    const { db } = schemas;
    const first = pgliteStore(db);
    const turns = createTurns(first);
    await turns.take(2, plainTurn);
    await first.close?.();
    await expect(first.getSnapshot(turns.scope, turns)).rejects.toThrow('closed');
    const read = await pgliteStore(db).getSnapshot(turns.scope, { sessionId: turns.sessionId });
    expect(read?.state?.messages).toHaveLength(4);
  });
});
