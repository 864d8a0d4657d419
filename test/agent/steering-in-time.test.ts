import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Store } from '../../src/store/contract/store.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { type CleanSchemas, cleanSchemas } from '../support/clean-schemas.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { must, openApp, told } from './support/kit.ts';
import { localStores, withLocalStore } from './support/local-stores.ts';

let postgres: TestPostgres;
let schemas: CleanSchemas;
beforeAll(async () => {
  postgres = await startPostgres();
  schemas = cleanSchemas(postgres.connectionString);
});
afterAll(async () => {
  await schemas.close();
  await postgres.stop();
});

/** Opens a store for the worker, and one for another process that steers its runs. */
async function withStores(
  name: (typeof localStores)[number] | 'postgres',
  work: (store: Store, other: Store) => Promise<void>,
): Promise<void> {
  if (name !== 'postgres') return await withLocalStore(name, (store) => work(store, store));
  const schema = schemas.take();
  const open = (): Store => postgresStore({ connectionString: postgres.connectionString, schema });
  const [store, other] = [open(), open()];
  try {
    await work(store, other);
  } finally {
    await Promise.all([store.close?.(), other.close?.()]);
    await schemas.giveBack(schema);
  }
}

/** The store of a process whose notifications are still on their way. */
function withoutHints(store: Store): Store {
  return { ...store, ...(store.abort && { abort: { ...store.abort, onChange: () => () => {} } }) };
}

const rounds = 5;

const cases = [...localStores, 'postgres' as const].flatMap((name) => [
  [name, 'in this process', 'an attached'] as const,
  [name, 'in this process', 'a background'] as const,
  [name, 'in another process', 'a background'] as const,
]);

test.each(cases)(
  'S734 %s: a message that is steered %s before the tools of %s turn end is taken after them',
  async (name, where, mode) => {
    await withStores(name, async (store, elsewhere) => {
      const isHere = where === 'in this process';
      await using app = openApp({ store: isHere ? store : withoutHints(store) });
      await using other = openApp({ store: elsewhere, work: false });
      let sent = 0;
      // Its last act: the tools end as soon as the message is accepted.
      const steer = app.defineTool({ name: 'steer', description: 'Steers.' }, async () => {
        const run = must((await (isHere ? chat : remote).listRuns()).items[0]);
        await (isHere ? chat : remote).steer(run.snapshotId, `message ${++sent}`);
        return sent;
      });
      const model = scriptedModel([
        ...Array.from({ length: rounds }, () => ({ toolCalls: [{ name: 'steer' }] })),
        'done',
      ]);
      const chat = app.defineAgent({ name: 'chat', model, tools: [steer] });
      const remote = other.defineAgent({ name: 'chat', model });
      if (mode === 'an attached') await chat.run('go');
      else await (await chat.start('go')).wait();
      const last = model.requests.slice(1).map(({ messages }) => told(messages).at(-1));
      expect(last).toEqual(Array.from({ length: rounds }, (_, at) => `user: message ${at + 1}`));
    });
  },
);
