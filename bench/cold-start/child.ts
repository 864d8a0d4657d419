// One start of a system: imports it, opens its store and runs one turn, whose stream is read to the end. Says when its first text
// came, when it was done, and how much CPU time it took.

import { systems } from '../systems/all.ts';
import { firstText } from '../systems/system.ts';
import { variants } from '../systems/variants.ts';

const [name = '', variant = '', directory = '', postgres = ''] = process.argv.slice(2);
if (name === 'node') await connectOnly();
else await runTurn();
const end = performance.timeOrigin + performance.now();
const { user, system } = process.cpuUsage();
const start = { first: firstText.at ?? end, end, cpuMs: (user + system) / 1000 };
process.stdout.write(`${JSON.stringify(start)}\n`);
// Whatever a system leaves open is not measured.
process.exit();

async function runTurn(): Promise<void> {
  const listed = systems[name];
  if (listed === undefined || variants[name]?.[variant] === undefined) {
    throw new Error(`There is no system ${name}, ${variant}.`);
  }
  const { system } = await listed.load();
  const running = await system.open(variant, { directory, postgres, tools: false });
  const session = await running.start(`cold-${process.pid}`);
  const length = await running.turn(session, 'hello');
  if (length === 0) throw new Error('Nothing was streamed.');
}

/** What any program pays that uses Postgres: a connection and a query. */
async function connectOnly(): Promise<void> {
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: postgres });
  await client.connect();
  await client.query('SELECT 1');
}
