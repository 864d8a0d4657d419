// What a one-field change of a custom state costs at 1 KB, 100 KB and 1 MB, by shape and store: `node bench/micro/custom-state.ts
// [store …]`. CPU time of the process per turn, sizes interleaved, so that the ratios hold on a busy machine.
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { memoryStore, type Store, waymark } from '../../src/index.ts';
import { fileStore } from '../../src/store/file/index.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';

interface Task {
  title: string;
  note: string;
  count: number;
}

const task = (at: number): Task => ({ title: `Task ${at}`, note: 'n'.repeat(150), count: 0 });

/** A state of about so many bytes, and a change of one field of it. */
const shapes: Record<
  string,
  (bytes: number) => { state: unknown; change: (draft: never) => void }
> = {
  list: (bytes) => ({
    state: { tasks: Array.from({ length: Math.ceil(bytes / 200) }, (_, at) => task(at)) },
    change: ({ tasks }: { tasks: Task[] }) => {
      const chosen = tasks[Math.floor(tasks.length / 2)];
      if (chosen) chosen.count++;
    },
  }),
  map: (bytes) => ({
    state: Object.fromEntries(
      Array.from({ length: Math.ceil(bytes / 200) }, (_, at) => [`task-${at}`, task(at)]),
    ),
    change: (draft: Record<string, Task>) => {
      if (draft['task-1']) draft['task-1'].count++;
    },
  }),
  text: (bytes) => ({
    state: { text: 'a sentence. '.repeat(bytes / 12), count: 0 },
    change: (draft: { count: number }) => {
      draft.count++;
    },
  }),
};

const folder = mkdtempSync(join(tmpdir(), 'waymark-custom-'));
const url = process.env['POSTGRES_URL'];
const stores: Record<string, (name: string) => Store> = {
  memory: () => memoryStore(),
  sqlite: (name) => sqliteStore(join(folder, `${name}.db`)),
  file: (name) => fileStore(join(folder, name), { durability: 'normal' }),
  ...(url && {
    postgres: (name: string) => postgresStore({ connectionString: url, schema: name }),
  }),
};
const sizes = [1_000, 100_000, 1_000_000];
const chosen = process.argv.slice(2);

for (const [storeName, open] of Object.entries(stores)) {
  if (chosen.length > 0 && !chosen.includes(storeName)) continue;
  for (const [shapeName, shape] of Object.entries(shapes)) {
    const runs = await Promise.all(
      sizes.map(async (bytes) => {
        const name = `${storeName}_${shapeName}_${bytes}`;
        const store = open(name);
        const { state, change } = shape(bytes);
        const app = waymark({ store, work: false });
        const agent = app.defineCustomAgent(
          { name: 'probe', initialState: state as never },
          async (session) => {
            await session.run(async () => session.updateCustom(change as never));
          },
        );
        const chat = agent.chat();
        const turn = async (): Promise<unknown> => chat.send('go');
        for (let at = 0; at < 60; at++) await turn();
        return { name, turn, close: () => store.close?.(), times: [] as number[], grown: 0 };
      }),
    );
    for (let round = 0; round < 10; round++) {
      for (const run of runs) {
        const before = sizeOf(run.name);
        const started = process.cpuUsage();
        for (let at = 0; at < 10; at++) await run.turn();
        const { user, system } = process.cpuUsage(started);
        run.times.push((user + system) / 10);
        run.grown += (sizeOf(run.name) - before) / 100;
      }
    }
    const median = ({ times }: { times: number[] }): number => times.sort((a, b) => a - b)[5] ?? 0;
    const base = median(runs[0] as { times: number[] });
    const cells = runs.map((run) => {
      const time = median(run);
      return `${time.toFixed(0)} µs (× ${(time / base).toFixed(2)}), ${run.grown.toFixed(0)} B`;
    });
    console.log(`${storeName} ${shapeName}: ${cells.join(' | ')}`);
    for (const run of runs) await run.close();
  }
}
rmSync(folder, { recursive: true, force: true });

function sizeOf(name: string): number {
  const entries = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const own = entries.filter((entry) => entry.startsWith(name) && !entry.endsWith('-shm'));
  return own.reduce((sum, entry) => sum + statSync(join(folder, entry)).size, 0);
}
