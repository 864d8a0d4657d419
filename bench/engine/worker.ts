import pg from 'pg';
import { PgBoss } from 'pg-boss';
import { pgBossEngine } from '../../src/engine/pg-boss/index.ts';
import { waymark } from '../../src/index.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';

/** A worker process of the benchmark: of our engine, or of plain pg-boss. Says on its standard output what happened when. */
const [connectionString = '', kind = 'waymark'] = process.argv.slice(2);
const slots = 20;
const say = (what: string): void => {
  process.stdout.write(`${what} ${performance.timeOrigin + performance.now()}\n`);
};

if (kind === 'waymark') {
  const pool = new pg.Pool({ connectionString, max: 12 });
  const engine = pgBossEngine({ pool, slots });
  const app = waymark({ store: postgresStore({ pool }), engine });
  app.defineCustomAgent({ name: 'job' }, async (session, { signal }) => {
    await session.run(async ({ message }) => {
      const [part] = message?.content ?? [];
      const text = part !== undefined && 'text' in part ? part.text : '';
      if (text !== 'quick') say('started');
      if (text === 'endless') {
        await new Promise<void>((resolve) => {
          signal.addEventListener('abort', () => resolve(), { once: true });
        });
        say('aborted');
      }
      session.addMessages({ role: 'model', content: [{ text: 'done' }] });
    });
  });
  await app.ready();
  process.once('SIGTERM', async () => {
    await app.close({ grace: 0 });
    process.exit(0);
  });
} else {
  const boss = new PgBoss({ connectionString, schema: 'plain' });
  await boss.start();
  await boss.createQueue('plain');
  void (async () => {
    for (;;) {
      const jobs = await boss.fetch('plain', { batchSize: slots });
      if (jobs.length > 0) await boss.complete('plain', jobs);
      else await new Promise((resolve) => setTimeout(resolve, 5));
    }
  })();
}
say('ready');
