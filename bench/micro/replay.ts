// What a replay of 1,000 turns costs with an instant model on SQLite: `node bench/micro/replay.ts`. One session of 1,000 turns, and
// 100 sessions of 10; wall time, CPU time and memory after it.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Model, waymark } from '../../src/index.ts';
import { replay } from '../../src/replay/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';

const folder = mkdtempSync(join(tmpdir(), 'waymark-replay-'));
const model: Model = {
  name: 'instant',
  run: async ({ messages }) => ({
    message: { role: 'model', content: [{ text: `Answer ${messages.length}` }] },
    finishReason: 'stop',
    usage: { totalTokens: 10 },
  }),
};
for (const [sessions, turns] of [
  [1, 1_000],
  [100, 10],
] as const) {
  const app = waymark({
    store: sqliteStore(join(folder, `${sessions}.db`)),
    model,
    work: false,
  });
  const agent = app.defineAgent({ name: 'chat' });
  for (let session = 0; session < sessions; session++)
    for (let turn = 0; turn < turns; turn++)
      await agent.run(`Message ${turn}`, { sessionId: `s${session}` });
  const started = performance.now();
  const before = process.cpuUsage();
  const report = await replay(app, { sessions: { agent: 'chat' } });
  const took = performance.now() - started;
  const { user, system } = process.cpuUsage(before);
  const { rss } = process.memoryUsage();
  console.log(
    `${sessions} × ${turns} turns: ${took.toFixed(0)} ms (${((user + system) / 1_000).toFixed(0)} ms CPU), ${report.turns.length} replayed, ${report.divergent} differ, ${(rss / 2 ** 20).toFixed(0)} MB`,
  );
  await app.close();
}
rmSync(folder, { recursive: true, force: true });
