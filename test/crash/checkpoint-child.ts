/** A process that starts a detached run and kills itself with SIGKILL as soon as the checkpoint after its tool is written. */
import { waymark } from '../../src/app.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { openPlace, type Place } from './support/agents.ts';
import { defineNoter, dyingScript } from './support/noter.ts';

const store = await openPlace(JSON.parse(process.argv[2] ?? '{}') as Place);
const { runs } = store;
if (runs === undefined) throw new Error('the store has no runs');
const dying: Store = {
  ...store,
  runs: {
    ...runs,
    async checkpoint(...args) {
      await runs.checkpoint(...args);
      process.kill(process.pid, 'SIGKILL');
      return await new Promise<never>(() => {});
    },
  },
};
const app = waymark({ store: dying });
const noter = defineNoter(app, dyingScript);
const { snapshotId } = await noter.run({
  message: { role: 'user', content: [{ text: 'hi' }] },
  detach: true,
});
process.stdout.write(`${snapshotId}\n`);
// Stays until it kills itself.
setInterval(() => {}, 1000);
