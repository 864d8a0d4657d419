import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { PgBoss } from 'pg-boss';
import { pgBossEngine } from '../../src/engine/pg-boss/index.ts';
import { waymark } from '../../src/index.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { startPostgres } from '../../test/support/postgres.ts';
import { begin, measureChangeOfHands, measureLatency } from './latency.ts';
import { startWorker } from './processes.ts';

/** What the queue costs: `node bench/engine/main.ts [runs]`. One server and one worker process on one Postgres. */
const runs = Number(process.argv[2] ?? 2_000);
const rounds = 3;
const singles = 60;
const atOnce = 20;
/** After so many milliseconds the statistics of an idle connection are complete. */
const statisticsMs = 11_000;

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

const { drain, takeover } = await measureChangeOfHands(agent, connectionString);
const worker = await startWorker(connectionString, 'waymark');
const { toStart, toAbort } = await measureLatency(agent, worker, singles);

const boss = new PgBoss({ connectionString, schema: 'plain', supervise: false, schedule: false });
await boss.start();
await boss.createQueue('plain');
const plainWorker = await startWorker(connectionString, 'plain');
// It asks for jobs all the time, which is nothing to measure ours beside.
plainWorker.process.kill('SIGSTOP');

const ours = (): Promise<void> =>
  untilDone(() => begin(agent, 'quick'), 'SELECT count(*)::int AS n FROM waymark.runs');
const plain = async (): Promise<void> => {
  plainWorker.process.kill('SIGCONT');
  await untilDone(
    () => boss.send('plain', { a: 1 }),
    `SELECT count(*)::int AS n FROM plain.job WHERE name = 'plain' AND state <> 'completed'`,
  );
  plainWorker.process.kill('SIGSTOP');
};
// Once each for the compiler, then in turns, so that whatever else the machine does meets both.
await ours();
await plain();
const commits = { ours: await commitsOf(ours), plain: await commitsOf(plain) };
const speeds = { ours: [] as number[], plain: [] as number[] };
for (let round = 0; round < rounds; round++) {
  speeds.ours.push(await speedOf(ours));
  speeds.plain.push(await speedOf(plain));
}

const perSecond = { ours: at(speeds.ours, 0.5, 0), plain: at(speeds.plain, 0.5, 0) };
console.info(
  JSON.stringify(
    {
      runs,
      enqueueToStartMs: { p50: at(toStart, 0.5), p95: at(toStart, 0.95) },
      abortMs: { p50: at(toAbort, 0.5), p95: at(toAbort, 0.95) },
      drainMs: Math.round(drain),
      takeoverMs: Math.round(takeover),
      waymark: { perSecond: perSecond.ours, commitsPerRun: commits.ours },
      plainPgBoss: { perSecond: perSecond.plain, commitsPerRun: commits.plain },
      share: Number((perSecond.ours / perSecond.plain).toFixed(2)),
    },
    null,
    2,
  ),
);
plainWorker.process.kill('SIGKILL');
worker.process.kill('SIGTERM');
await once(worker.process, 'exit');
await boss.stop({ graceful: false });
await app.close({ grace: 0 });
await pool.end();
await postgres.stop();
process.exit(0);

/** Begins `runs` of something in some lanes, and waits until all have been worked on. */
async function untilDone(start: () => Promise<unknown>, countLeft: string): Promise<void> {
  let left = runs;
  const lane = async (): Promise<void> => {
    while (left-- > 0) await start();
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  while ((await pool.query<{ n: number }>(countLeft)).rows[0]?.n !== 0) await sleep(20);
}

async function speedOf(work: () => Promise<void>): Promise<number> {
  const started = performance.now();
  await work();
  return (runs / (performance.now() - started)) * 1_000;
}

/** Transactions, reads included, that one costs. */
async function commitsOf(work: () => Promise<void>): Promise<number> {
  await sleep(statisticsMs);
  const before = await transactions();
  await work();
  await sleep(statisticsMs);
  return Number((((await transactions()) - before) / runs).toFixed(1));
}

async function transactions(): Promise<number> {
  const { rows } = await pool.query<{ n: string }>(
    'SELECT xact_commit AS n FROM pg_stat_database WHERE datname = current_database()',
  );
  return Number(rows[0]?.n ?? 0);
}

function at(values: readonly number[], q: number, digits = 1): number {
  const sorted = values.toSorted((a, b) => a - b);
  return Number(sorted[Math.floor(q * (values.length - 1))]?.toFixed(digits));
}
