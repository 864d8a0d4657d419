// What maintenance of a large SQLite store costs, and how long it keeps the thread: `node bench/micro/maintenance.ts [sessions]`.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { waymark } from '../../src/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';

const sessions = Number(process.argv[2] ?? 10_000);
const folder = mkdtempSync(join(tmpdir(), 'waymark-maintenance-'));
const path = join(folder, 'store.db');
const store = sqliteStore(path, { durability: 'normal' });
const app = waymark({ store, work: false });
const agent = app.defineCustomAgent({ name: 'chat' }, async (session) => {
  await session.run(async () => {
    session.addMessages({ role: 'model', content: [{ text: 'm'.repeat(400) }] });
  });
});
for (let no = 0; no < sessions; no++) {
  for (let turn = 0; turn < 3; turn++) await agent.runText('next', { sessionId: `s${no}` });
}

/** Processor time of this thread in milliseconds: other processes do not count. */
function spent(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** What something costs, and how much of it was done at a time, without a turn in between. */
async function measure(what: string, work: () => Promise<unknown>): Promise<void> {
  const kept: number[] = [];
  let isDone = false;
  let before = spent();
  const tick = (): void => {
    const now = spent();
    kept.push(now - before);
    before = now;
    if (!isDone) setImmediate(tick);
  };
  setImmediate(tick);
  const [started, cpu] = [performance.now(), spent()];
  await work();
  isDone = true;
  const took = (performance.now() - started) / 1000;
  kept.sort((a, b) => a - b);
  const p99 = kept[Math.floor(kept.length * 0.99)] ?? 0;
  console.log(
    `${what}: ${took.toFixed(2)} s, processor ${((spent() - cpu) / 1000).toFixed(2)} s; at a time ${p99.toFixed(1)} ms (p99), ${(kept.at(-1) ?? 0).toFixed(1)} ms (longest)`,
  );
}

await measure('verify', async () => store.maintenance?.verify());
await measure('prune to the last snapshot', async () => store.maintenance?.prune({ keepLast: 1 }));
await app.close();
const db = new DatabaseSync(path);
await measure('bare SQLite: integrity_check', async () =>
  db.prepare('PRAGMA integrity_check').all(),
);
db.close();
rmSync(folder, { recursive: true, force: true });
