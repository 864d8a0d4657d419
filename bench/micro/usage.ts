// What it costs to record what a turn has spent: turns whose model reports no usage, usage, and usage with a price, alternating
// in one run, on each store, and turns that take a message that was sent to them. `node bench/micro/usage.ts [turns] [store]`
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { waymark } from '../../src/app.ts';
import { modelMessage } from '../../src/generate/template.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { fileStore } from '../../src/store/file/index.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { startPostgres } from '../lib/postgres.ts';

const turns = Number(process.argv[2] ?? 1000);
const folder = await mkdtemp(join(tmpdir(), 'bench-usage-'));
// Postgres does not run as root, and its own user has to reach the folder.
await chmod(folder, 0o755);
const usage = { inputTokens: 1000, outputTokens: 100, totalTokens: 1100 };

const only = process.argv[3];
const postgres =
  only === undefined || only === 'postgres' ? await startPostgres(folder) : undefined;
const connectionString = (await postgres?.createDatabase('usage')) ?? '';

const stores: Record<string, (name: string) => Store> = {
  memory: () => memoryStore(),
  sqlite: (name) => sqliteStore(join(folder, `${name}.db`), { durability: 'normal' }),
  file: (name) => fileStore(join(folder, name), { durability: 'normal' }),
  postgres: (name) => postgresStore({ connectionString, schema: `bench_${name}` }),
};

const kinds = { none: {}, usage: { usage }, priced: { usage }, waits: {}, steered: {} };

for (const [store, open] of Object.entries(stores)) {
  if (only !== undefined && only !== store) continue;
  const subjects = Object.entries(kinds).map(([kind, reported]) => {
    const price = kind === 'priced' ? { price: () => ({ USD: 5 }) } : {};
    const app = waymark({ store: open(kind), ...price });
    const model = app.defineModel({ name: kind }, async () => {
      // The model answers twice in a turn that is steered, so most of the difference is the second call and the message.
      if (kind === 'steered' && isFirst) {
        isFirst = false;
        await agent.steer(await started.promise, 'more', { owner: 'ann' });
      }
      return { message: modelMessage('ok'), finishReason: 'stop', ...reported };
    });
    const concurrency = kind === 'waits' ? ('wait' as const) : ('reject' as const);
    const agent = app.defineAgent({ name: 'chat', model, concurrency });
    let started = Promise.withResolvers<string>();
    let isFirst = true;
    const times: number[] = [];
    const turn = async (): Promise<void> => {
      const start = performance.now();
      started = Promise.withResolvers();
      isFirst = true;
      const { stream, output } = agent.streamText('hi', { owner: 'ann' });
      for await (const { turnStart } of stream) {
        if (turnStart?.snapshotId !== undefined) started.resolve(turnStart.snapshotId);
      }
      await output;
      times.push(performance.now() - start);
    };
    return { kind, app, turn, times };
  });
  for (let at = 0; at < turns; at++) for (const { turn } of subjects) await turn();
  // The lower quartile: what else the machine does makes turns slower, never faster.
  const typical = (times: readonly number[]): number =>
    times.toSorted((a, b) => a - b)[Math.floor(times.length / 4)] ?? 0;
  const [none = 0] = subjects.map(({ times }) => typical(times));
  for (const { kind, times, app } of subjects) {
    const micros = Math.round(typical(times) * 1000);
    console.log(store, kind, `${micros} µs`, (typical(times) / none).toFixed(2));
    await app.close();
  }
}
await postgres?.stop();
await rm(folder, { recursive: true });
