import { serve } from '../../src/server/index.ts';
import { openTestStore } from './child-store.ts';
import { createTestApp } from './kit.ts';

// A server process of its own, on the store that its arguments name. Tells its port, and ends with its parent.
const [kind = '', place = '', claimTtl = ''] = process.argv.slice(2);
const app = createTestApp({ store: await openTestStore(kind, place), claimTtl: Number(claimTtl) });
await app.ready();
const server = await serve(app, { port: 0, grace: 0, log: () => {}, keepAlive: 200 });
process.send?.({ port: server.port });
process.on('disconnect', () => process.exit());
process.on('message', async (message) => {
  if (message !== 'close') return;
  await server.close();
  await app.close({ deadlineMs: 0 });
  process.exit();
});
