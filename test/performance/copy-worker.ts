// Verifies one long session of a file store and sends how many bytes of each turn the copy takes that `verify` works on. Needs
// --expose-gc.
import { live } from './heap.ts';
import { openOnFiles } from './open-on-files.ts';

const [directory = ''] = process.argv.slice(2);
const turns = 3000;

const first = openOnFiles(directory);
for (let turn = 0; turn < turns; turn++) await first.agent.runText('hello', { sessionId: 's' });
await first.store.maintenance?.verify();
await first.app.close();

const { store, app } = openOnFiles(directory);
const before = live();
let most = 0;
await store.maintenance?.verify({
  onProgress(done) {
    // Near the end, everything that it holds on to is there.
    if (most === 0 && done > turns * 0.9) most = live() - before;
  },
});
process.send?.({ bytesPerTurn: most / turns });
await app.close();
