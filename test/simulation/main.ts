import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import type { WorkerReport, WorkerTask } from './worker.ts';

// Runs episodes on all cores: `node test/simulation/main.ts --seconds 120`, or one seed: `--seed 33 --episodes 1 --sqlite 0`.

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '120' },
    episodes: { type: 'string', default: '1000000' },
    workers: { type: 'string', default: String(availableParallelism()) },
    sqlite: { type: 'string', default: '5' },
    digest: { type: 'boolean', default: false },
  },
});
const workers = Math.min(Number(values.workers), Number(values.episodes));
const begun = Date.now();
const schedules: string[] = [];
const sums = { memory: 0, sqlite: 0, simulatedMs: 0, episodes: 0 };
const failures: WorkerReport[] = [];

const run = (at: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const task: WorkerTask = {
      first: Number(values.seed) + at,
      stride: workers,
      sqliteEvery: Number(values.sqlite),
      deadline: begun + Number(values.seconds) * 1_000,
      episodes: Math.ceil(Number(values.episodes) / workers),
    };
    const worker = new Worker(new URL('./worker.ts', import.meta.url), { workerData: task });
    worker.on('message', (report: WorkerReport) => {
      sums[report.store] += report.turns;
      sums.simulatedMs += report.simulatedMs;
      sums.episodes++;
      schedules.push(`${report.seed} ${report.schedule}`);
      if (report.failure === undefined) return;
      failures.push(report);
      console.log(`\nSeed ${report.seed} on ${report.store} failed:\n${report.failure}`);
    });
    worker.on('error', reject);
    worker.on('exit', () => resolve());
  });

await Promise.all(Array.from({ length: workers }, (_, at) => run(at)));
const seconds = (Date.now() - begun) / 1_000;
const hours = sums.simulatedMs / 3_600_000;
console.log(
  `${sums.episodes} episodes, ${sums.memory + sums.sqlite} turns (${sums.sqlite} on SQLite), ${Math.round(hours)} simulated hours in ${Math.round(seconds)} s`,
);
if (values.digest) console.log(`Schedule ${schedules.sort().join(', ')}`);
console.log(`${sums.episodes - failures.length} passed, ${failures.length} failed`);
if (failures.length > 0) {
  console.log(`Seeds: ${failures.map(({ seed, store }) => `${seed} (${store})`).join(', ')}`);
  process.exitCode = 1;
}
