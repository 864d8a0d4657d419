import { createInterface } from 'node:readline';
import { serve } from '../../src/server/index.ts';
import { sharedClock } from '../support/shared-clock.ts';
import { openTestStore } from './child-store.ts';
import { createTestApp, testWebhooks } from './kit.ts';

// A server process of its own, on the store and the clock that its arguments name. Tells its port, and ends with its parent.
const [kind = '', place = '', clockFile = ''] = process.argv.slice(2);
const { clock } = sharedClock(clockFile);
const app = createTestApp({
  store: await openTestStore(kind, place, clock),
  clock,
  webhooks: testWebhooks,
});
await app.ready();
const server = await serve(app, {
  port: 0,
  grace: 0,
  log: () => {},
  keepAlive: 200,
  a2a: true,
  mcp: true,
  openai: true,
  // All clients of the tests have one address, and a busy machine accepts their connections long before their requests.
  limits: { unauthenticatedPerAddress: 1000 },
});
const lines = createInterface({ input: process.stdin });
lines.on('line', async (line) => {
  if (line !== 'close') return;
  await server.close();
  await app.close({ grace: 0 });
  process.exit();
});
lines.on('close', () => process.exit());
console.log(`port ${server.port}`);
