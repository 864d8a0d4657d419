import './host.ts';
import { parentPort, workerData } from 'node:worker_threads';

// Loaded after the globals were replaced.
const { planOf, runEpisode } = await import('./episode.ts');
const { shrink } = await import('./shrink.ts');

/** The task of a worker: every `stride`-th seed from `first` on, until it is stopped. */
export interface WorkerTask {
  readonly first: number;
  readonly stride: number;
  /** Every so-manieth episode runs on SQLite; 0: none. */
  readonly sqliteEvery: number;
  readonly deadline: number;
  readonly episodes: number;
}

/** The report of a worker after each episode. */
export interface WorkerReport {
  readonly seed: number;
  readonly store: 'memory' | 'sqlite';
  readonly turns: number;
  readonly simulatedMs: number;
  /** A hash of all decisions. */
  readonly schedule: string;
  readonly failure?: string;
}

const { first, stride, sqliteEvery, deadline, episodes } = workerData as WorkerTask;
for (let n = 0; n < episodes && Date.now() < deadline; n++) {
  const seed = first + n * stride;
  const store = sqliteEvery > 0 && n % sqliteEvery === 0 ? 'sqlite' : 'memory';
  const plan = planOf(seed, store);
  const { turns, simulatedMs, schedule, failure } = await runEpisode(plan);
  const report: WorkerReport = {
    seed,
    store,
    turns,
    simulatedMs,
    schedule,
    ...(failure && { failure: await explain(plan, failure) }),
  };
  parentPort?.postMessage(report);
}

async function explain(plan: Parameters<typeof shrink>[0], failure: Error): Promise<string> {
  const { plan: smallest, result } = await shrink(plan, failure);
  return [
    failure.stack,
    `Shrunk to: ${JSON.stringify(smallest)}`,
    `${result.failure?.message}`,
    ...result.trace.slice(-60),
  ].join('\n');
}
