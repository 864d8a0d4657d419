// How long a turn takes while maintenance runs, next to a turn on an idle store, and what maintenance itself takes, on each store:
// `node bench/micro/maintenance.ts [sessions] [turns of the long session] [store]`. Every step of a turn and of maintenance
// uses the same thread, so the longest step is in the longest turn.
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PerformanceObserver } from 'node:perf_hooks';
import { DatabaseSync } from 'node:sqlite';
import { type Agent, waymark } from '../../src/index.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { fileStore } from '../../src/store/file/index.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { startPostgres } from '../lib/postgres.ts';

const sessions = Number(process.argv[2] ?? 10_000);
const longTurns = Number(process.argv[3] ?? 20_000);
const only = process.argv[4];

const folder = await mkdtemp(join(tmpdir(), 'waymark-maintenance-'));
// Postgres does not run as root, and its own user has to reach the folder.
await chmod(folder, 0o755);
// A transaction that needs a new file for the log of Postgres otherwise fills it with 16 MB of zeros, in 20 to 30 ms. A server that has run
// for a while uses old files again.
const settings = ['wal_init_zero=off'];
const postgres =
  only === undefined || only === 'postgres' ? await startPostgres(folder, settings) : undefined;
const connectionString = (await postgres?.createDatabase('maintenance')) ?? '';

const stores: Record<string, (name: string) => Store> = {
  memory: () => memoryStore(),
  files: (name) => fileStore(join(folder, name), { durability: 'normal' }),
  sqlite: (name) => sqliteStore(join(folder, `${name}.db`), { durability: 'normal' }),
  postgres: (name) => postgresStore({ connectionString, schema: name }),
};

/** Processor time of this thread in milliseconds: other processes do not count. */
function spent(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

interface Measured {
  readonly seconds: number;
  /** Milliseconds of each turn that began meanwhile. */
  readonly turns: readonly number[];
  /** The longest processor time between two steps of the event loop that are a millisecond apart, in milliseconds. */
  readonly longest: number;
  /** The longest garbage collection, in milliseconds. */
  readonly collection: number;
}

let collection = 0;
const collections = new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) collection = Math.max(collection, duration);
});
collections.observe({ entryTypes: ['gc'] });

/** Runs turns, with a pause after each, until something is done. */
async function measure(
  begin: () => Promise<unknown> | undefined,
  turn?: () => Promise<unknown>,
): Promise<Measured> {
  // After a row without turns the pool of Postgres has closed its connections, and a session that was not used is read again.
  await turn?.();
  const turns: number[] = [];
  let longest = 0;
  let isDone = false;
  let before = spent();
  const tick = (): void => {
    const now = spent();
    longest = Math.max(longest, now - before);
    before = now;
    if (!isDone) setTimeout(tick, 1);
  };
  // Not in each step of the event loop: that would take a processor from the database.
  setTimeout(tick, 1);
  collection = 0;
  const started = performance.now();
  let seconds = 0;
  const working = (begin() ?? idle()).finally(() => {
    isDone = true;
    seconds = (performance.now() - started) / 1000;
  });
  while (!isDone && turn !== undefined) {
    const start = performance.now();
    await turn();
    turns.push(performance.now() - start);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  await working;
  // Those of the last moments are reported a little later.
  await new Promise((resolve) => setTimeout(resolve, 20));
  return { seconds, turns, longest, collection };
}

function show(what: string, { seconds, turns, longest, collection }: Measured): void {
  const sorted = turns.toSorted((a, b) => a - b);
  const at = (share: number): string =>
    (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0).toFixed(1);
  console.log(
    `| ${what} | ${seconds.toFixed(2)} | ${turns.length} | ${at(0.5)} | ${at(0.99)} | ${at(1)} | ${longest.toFixed(1)} | ${collection.toFixed(1)} |`,
  );
}

/** An agent whose turns add one message of the user and one of the model, and change the state. */
function chatOf(store: Store): { agent: Agent; close(): Promise<void> } {
  const app = waymark({ store, work: false });
  const agent = app.defineCustomAgent({ name: 'chat' }, async (session) => {
    await session.run(async () => {
      session.addMessages({ role: 'model', content: [{ text: 'm'.repeat(400) }] });
      session.updateCustom((state) => ({ turns: Number(Object(state).turns ?? 0) + 1 }));
    });
  });
  return { agent, close: () => app.close() };
}

async function fill(agent: Agent): Promise<void> {
  let next = 0;
  const some = async (): Promise<void> => {
    for (let no = next++; no < sessions; no = next++) {
      for (let turn = 0; turn < 3; turn++) await agent.runText('next', { sessionId: `s${no}` });
    }
  };
  await Promise.all(Array.from({ length: 8 }, some));
}

async function fillLong(agent: Agent): Promise<void> {
  for (let turn = 0; turn < longTurns; turn++) await agent.runText('next', { sessionId: 'long' });
}

const idle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 10_000));

console.log(
  '| store, task, turns in | s | turns | p50 ms | p99 ms | max ms | longest step ms | longest collection ms |',
);
console.log('| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |');

for (const [name, open] of Object.entries(stores)) {
  if (only !== undefined && only !== name) continue;
  for (const shape of ['many', 'long'] as const) {
    const store = open(shape);
    const { maintenance } = store;
    const { agent, close } = chatOf(store);
    await (shape === 'many' ? fill(agent) : fillLong(agent));
    // Otherwise Postgres does it at any moment of the next minute.
    if (name === 'postgres') await postgres?.vacuum('maintenance');
    let no = 0;
    const inOthers = () => agent.runText('hello', { sessionId: `probe${no++ % 20}` });
    const inIt = () => agent.runText('hello', { sessionId: shape === 'many' ? 's7' : 'long' });
    const what = shape === 'many' ? `${sessions} × 3` : `1 × ${longTurns}`;
    const label = (task: string, where: string): string => `${name}, ${what}, ${task}, ${where}`;
    show(label('idle', 'others'), await measure(idle, inOthers));
    show(label('verify', 'none'), await measure(() => maintenance?.verify()));
    for (const [where, turn] of [
      ['others', inOthers],
      ['the same', inIt],
    ] as const) {
      show(label('verify', where), await measure(() => maintenance?.verify(), turn));
    }
    const half = { keepLast: shape === 'many' ? 2 : Math.floor(longTurns / 2) };
    show(label('prune a part', 'others'), await measure(() => maintenance?.prune(half), inOthers));
    const all = () => maintenance?.prune({ keepLast: 1 });
    show(label('prune to 1', 'the same'), await measure(all, inIt));
    const again = () => maintenance?.verify();
    show(label('verify again', 'the same'), await measure(again, inIt));
    await close();
    if (name === 'sqlite' && shape === 'many') {
      const db = new DatabaseSync(join(folder, `${shape}.db`));
      const start = performance.now();
      db.prepare('PRAGMA integrity_check').all();
      const took = (performance.now() - start) / 1000;
      console.log(`| bare SQLite: integrity_check | ${took.toFixed(2)} | | | | | |`);
      db.close();
    }
  }
}

await postgres?.stop();
await rm(folder, { recursive: true, force: true });
