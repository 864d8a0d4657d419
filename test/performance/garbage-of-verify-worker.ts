// Verifies the sessions of a file store that it has made or, with `read`, that another store has made, and sends how many bytes of
// each are garbage that only a full collection finds. Needs --expose-gc.

import { waymark } from '../../src/index.ts';
import { fileStore } from '../../src/store/file/index.ts';

const [directory = '', isRead] = process.argv.slice(2);
const sessions = 1500;

function open() {
  const store = fileStore(directory, { durability: 'normal' });
  const app = waymark({ store, work: false });
  const agent = app.defineCustomAgent({ name: 'young' }, async (session) => {
    await session.run(async () => {
      session.addMessages({ role: 'model', content: [{ text: 'm'.repeat(400) }] });
    });
  });
  return { store, app, agent };
}

let { store, app, agent } = open();
for (let no = 0; no < sessions; no++) {
  for (let turn = 0; turn < 3; turn++) await agent.runText('hello', { sessionId: `s${no}` });
}
if (isRead !== undefined) {
  await app.close();
  ({ store, app, agent } = open());
  for (let no = 0; no < sessions; no++) await agent.getSession(`s${no}`);
}
for (let times = 0; times < 3; times++) await store.maintenance?.verify();
globalThis.gc?.();
await store.maintenance?.verify();
globalThis.gc?.({ type: 'minor' });
const before = process.memoryUsage().heapUsed;
globalThis.gc?.();
const after = process.memoryUsage().heapUsed;
process.send?.({ bytesPerSession: (before - after) / sessions });
await app.close();
