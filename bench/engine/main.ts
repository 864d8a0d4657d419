import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { PgBoss } from 'pg-boss';
import { pgBossEngine } from '../../src/engine/pg-boss/index.ts';
import { waymark } from '../../src/index.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { startPostgres } from '../../test/support/postgres.ts';

/** What the queue costs: `node bench/engine/main.ts`. One server and one worker process on one Postgres. */
const runs = Number(process.argv[2] ?? 400);
const singles = 40;
const atOnce = 20;

const postgres = await startPostgres();
const { connectionString } = postgres;
const pool = new pg.Pool({ connectionString, max: 24 });
// The server is stopped at the end while the pool may still have connections.
pool.on('error', () => {});
const app = waymark({
  store: postgresStore({ pool }),
  engine: pgBossEngine({ pool }),
  work: false,
});
app.defineCustomAgent({ name: 'job' }, async () => {});
await app.ready();
const agent = app.agent('job');
const now = (): number => performance.timeOrigin + performance.now();

const begin = async (text: string): Promise<string> => {
  const message = { role: 'user' as const, content: [{ text }] };
  const { snapshotId = '' } = await agent.run({ message, detach: true });
  return snapshotId;
};

const worker = await startWorker('waymark');
const toStart: number[] = [];
const toAbort: number[] = [];
for (let n = 0; n < singles; n++) {
  await new Promise((resolve) => setTimeout(resolve, 20));
  const startedAt = worker.next('started');
  const runId = await begin('endless');
  const enqueued = now();
  toStart.push((await startedAt) - enqueued);
  await new Promise((resolve) => setTimeout(resolve, 20));
  const abortedAt = worker.next('aborted');
  const asked = now();
  await agent.abort(runId);
  toAbort.push((await abortedAt) - asked);
}

const ours = await measure(async () => {
  await inLanes(() => begin('quick'));
  await untilNone(`SELECT count(*)::int AS n FROM waymark.runs`);
});
worker.process.kill('SIGTERM');

const boss = new PgBoss({ connectionString, schema: 'plain', supervise: false, schedule: false });
await boss.start();
await boss.createQueue('plain');
const plainWorker = await startWorker('plain');
const plain = await measure(async () => {
  await inLanes(async () => (await boss.send('plain', { a: 1 })) ?? '');
  await untilNone(
    `SELECT count(*)::int AS n FROM plain.job WHERE name = 'plain' AND state <> 'completed'`,
  );
});
plainWorker.process.kill('SIGKILL');

const at = (values: readonly number[], q: number): number =>
  Number([...values].sort((a, b) => a - b)[Math.floor(q * (values.length - 1))]?.toFixed(1));
console.info(
  JSON.stringify(
    {
      runs,
      enqueueToStartMs: { p50: at(toStart, 0.5), p95: at(toStart, 0.95) },
      abortMs: { p50: at(toAbort, 0.5), p95: at(toAbort, 0.95) },
      waymark: ours,
      plainPgBoss: plain,
      share: Number((ours.perSecond / plain.perSecond).toFixed(2)),
    },
    null,
    2,
  ),
);
await boss.stop({ graceful: false });
await app.close({ deadlineMs: 0 });
await pool.end();
await postgres.stop();
process.exit(0);

/** Throughput of something done `runs` times, and the commits that one costs. */
async function measure(
  work: () => Promise<void>,
): Promise<{ readonly perSecond: number; readonly commitsPerRun: number }> {
  const before = await commits();
  const started = performance.now();
  await work();
  const seconds = (performance.now() - started) / 1000;
  // The statistics of a backend are written after a moment.
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  const each = ((await commits()) - before) / runs;
  return { perSecond: Math.round(runs / seconds), commitsPerRun: Number(each.toFixed(1)) };
}

async function untilNone(count: string): Promise<void> {
  while ((await pool.query<{ n: number }>(count)).rows[0]?.n !== 0) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function commits(): Promise<number> {
  const { rows } = await pool.query<{ n: string }>(
    'SELECT xact_commit AS n FROM pg_stat_database WHERE datname = current_database()',
  );
  return Number(rows[0]?.n ?? 0);
}

async function inLanes(work: () => Promise<string>): Promise<string[]> {
  const ids: string[] = [];
  let left = runs;
  const lane = async (): Promise<void> => {
    while (left-- > 0) ids.push(await work());
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  return ids;
}

interface WorkerProcess {
  readonly process: ChildProcess;
  /** When it says this next. */
  next(what: string): Promise<number>;
}

async function startWorker(kind: string): Promise<WorkerProcess> {
  const script = fileURLToPath(new URL('./worker.ts', import.meta.url));
  const child = spawn(process.execPath, [script, connectionString, kind], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const next = async (what: string): Promise<number> => {
    for (;;) {
      const [data] = (await once(child.stdout, 'data')) as [Buffer];
      const found = new RegExp(`^${what} (\\S+)$`, 'm').exec(data.toString());
      if (found) return Number(found[1]);
    }
  };
  await next('ready');
  return { process: child, next };
}
