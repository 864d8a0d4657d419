// Verifies the sessions of a file store that it has made or, with `read`, that another store has made, and sends how many bytes of
// each are garbage that only a full collection finds. Needs --expose-gc.
import { takenForOld } from './heap.ts';
import { openOnFiles } from './open-on-files.ts';

const [directory = '', isRead] = process.argv.slice(2);
const sessions = 1500;

let { store, app, agent } = openOnFiles(directory);
for (let no = 0; no < sessions; no++) {
  for (let turn = 0; turn < 3; turn++) await agent.runText('hello', { sessionId: `s${no}` });
}
if (isRead !== undefined) {
  await app.close();
  ({ store, app, agent } = openOnFiles(directory));
  for (let no = 0; no < sessions; no++) await agent.getSession(`s${no}`);
}
for (let times = 0; times < 3; times++) await store.maintenance?.verify();
globalThis.gc?.();
await store.maintenance?.verify();
process.send?.({ bytesPerSession: takenForOld() / sessions });
await app.close();
