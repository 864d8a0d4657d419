import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type App, memoryStore, waymark } from 'waymark';
import { createClient } from 'waymark/client';
import { pgBossEngine } from 'waymark/pg-boss';
import { postgresStore } from 'waymark/postgres';
import { type RunningServer, serve } from 'waymark/server';
import { defineArchive } from '../../examples/research-service/archive.ts';
import { defineResearcher, price } from '../../examples/research-service/researcher.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';

let postgres: TestPostgres;
let archive: { readonly app: App; readonly server: RunningServer };
const log = (): void => {};

beforeAll(async () => {
  postgres = await startPostgres();
  const app = waymark({ store: memoryStore() });
  defineArchive(app);
  archive = { app, server: await serve(app, { port: 0, a2a: true, log }) };
});
afterAll(async () => {
  await archive.server.close();
  await archive.app.close();
  await postgres.stop();
});

/** One process of the service. */
function openService({ work }: { readonly work: boolean }) {
  const pool = new pg.Pool({ connectionString: postgres.connectionString, max: 5 });
  pool.on('error', () => {});
  const store = postgresStore({ pool });
  const app = waymark({ store, engine: pgBossEngine({ pool, slots: 2 }), price, work });
  const researcher = defineResearcher(app, { archiveUrl: `${archive.server.url}/a2a/archive` });
  const close = async (): Promise<void> => {
    await app.close();
    await pool.end();
  };
  return { app, researcher, close };
}

test('a server accepts a question, a worker asks the archive and writes the report', async () => {
  const accepting = openService({ work: false });
  await accepting.app.ready();
  const server = await serve(accepting.app, { port: 0, log });
  const client = createClient({ url: server.url }).agent<typeof accepting.researcher>('researcher');

  const run = await client.start('How do tides work?');
  expect(await run.status()).toBe('pending');
  const worker = openService({ work: true });
  await worker.app.ready();
  const done = await run.wait();
  expect(done.text).toBe('The report about “How do tides work?” is ready.');
  const { state } = (await client.getSession(run.sessionId)) ?? {};
  expect(JSON.stringify(state?.artifacts)).toMatch(/report\.md.*two highs and two lows/);
  // Three calls of the model, each with the tokens of the script.
  expect(done.usage?.cost).toEqual({ USD: 3 * (800 * 2 + 60 * 8) });

  const endless = await client.start('Everything about tides');
  const failed = await endless.wait({ throwOnError: false });
  expect(failed.error).toMatchObject({ status: 'RESOURCE_EXHAUSTED' });
  // The budget is two cents: the call that used it up was the last one.
  expect((await client.getUsage({ sessionId: endless.sessionId })).usage.cost?.USD).toBeLessThan(
    20_000 + 2_081,
  );

  await server.close();
  await accepting.close();
  await worker.close();
});
