import { randomBytes } from 'node:crypto';
import { serve } from '@hono/node-server';
import { waymark } from 'waymark';
import { postgresStore } from 'waymark/postgres';
import { chooseModel } from '../choose-model.ts';
import { demoPostgres } from '../shared/demo-postgres.ts';
import { bundlePage } from './bundle-page.ts';
import { defineDesk } from './desk.ts';
import { demoShop } from './shop.ts';
import { createSite } from './site.ts';

const { model, note } = await chooseModel();
const database = await demoPostgres('support-desk');

// #region app
const app = waymark({ store: postgresStore({ connectionString: database.connectionString }) });
defineDesk(app, demoShop(), model);
await app.ready();
// #endregion

// With a new secret at each start, employees sign in again.
const secret = process.env.SESSION_SECRET ?? randomBytes(32).toString('base64');
const site = createSite(app, { secret, page: await bundlePage() });
const port = Number(process.env.PORT ?? 3000);
const server = serve({ fetch: site.fetch, hostname: '127.0.0.1', port }, () => {
  console.log(`Support desk: http://127.0.0.1:${port} (${note})`);
});

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, async () => {
    server.close();
    await app.close(); // running turns may finish
    await database.stop();
    process.exit(0);
  });
}
