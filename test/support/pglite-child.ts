// Takes turns in a PGlite database on the disk, and says after each how many there are.
import { createRequire } from 'node:module';
import { pgliteStore } from '../../src/store/pglite/index.ts';
import { createTurns, plainTurn } from './store-workload.ts';

const [from = '', folder = ''] = process.argv.slice(2);
const { PGlite } = createRequire(from)(
  '@electric-sql/pglite',
) as typeof import('@electric-sql/pglite');
const turns = createTurns(pgliteStore(await PGlite.create(folder)));
for (let count = 1; ; count++) {
  await turns.take(1, plainTurn);
  console.log(`${turns.sessionId} ${count}`);
}
