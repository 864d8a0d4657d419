import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient } from '../../src/client/index.ts';
import { code } from '../../src/store/sql/values/codes.ts';
import { openQueueApp, type QueueApp } from '../engine/support/agents.ts';
import { type Child, startChild } from '../engine/support/processes.ts';
import { endProcesses } from '../support/child-process.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { makeTrouble, seeded } from './chaos.ts';

const runs = process.env.SCALE === '1' ? 10_000 : 150;
const minutes = runs === 10_000 ? 30 : 14;
const steps = 3;
// Enough of them that those whose worker has just died do not hold up the others.
const atOnce = runs === 10_000 ? 100 : 20;
const everyMs = runs === 10_000 ? 3_000 : 2_000;

let postgres: TestPostgres;
let observer: QueueApp;

beforeAll(async () => {
  postgres = await startPostgres({ maxConnections: 200 });
  observer = openQueueApp({ connectionString: postgres.connectionString, work: false });
  await observer.app.ready();
});
afterAll(async () => {
  await endProcesses();
  await observer.close(0);
  await postgres.stop();
});

test(
  `${runs} runs on four workers and two servers end exactly once, whatever dies`,
  async () => {
    const { connectionString } = postgres;
    const engine = { attempts: 1_000, slots: 8 };
    // Short claims: a worker that is only slow loses its runs, too, and everything must hold all the same.
    const claimTtl = 3_000;
    const startWorker = (): Promise<Child> =>
      startChild({ role: 'worker', connectionString, engine, claimTtl });
    const workers = await Promise.all([1, 2, 3, 4].map(startWorker));
    const servers = await Promise.all(
      [1, 2].map(() => startChild({ role: 'server', connectionString, claimTtl })),
    );
    const agents = servers.map(({ url }) => createClient({ url }).agent('echo'));
    const over = new AbortController();
    // One run lasts until a worker has been killed, however fast the others are.
    const held = await mkdtemp(join(tmpdir(), 'waymark-held-'));
    const trouble = makeTrouble({
      postgres,
      workers,
      startWorker,
      everyMs,
      random: seeded(7),
      onKill: () => rmSync(held, { recursive: true, force: true }),
      signal: over.signal,
    });

    const began = performance.now();
    const seen = new Map<string, Watched>();
    let next = 0;
    const lane = async (): Promise<void> => {
      for (let n = next++; n < runs; n = next++) {
        const agent = agents[n % agents.length];
        if (agent === undefined) throw new Error('No server.');
        const runId = await persist(async () => {
          const waitWhile = n === 0 ? held : undefined;
          const input = JSON.stringify({ ms: n % 7 === 0 ? 200 : 5, steps, n, waitWhile });
          const message = { role: 'user' as const, content: [{ text: input }] };
          // Under an id of its own, so that a second try after a lost answer does not begin it twice.
          const found = await observer.app.agent('echo').getSession(`run-${n}`);
          const begun = found && (await firstRun(`run-${n}`));
          return (
            begun ??
            (await agent.run({ message, detach: true }, { sessionId: `run-${n}` })).snapshotId
          );
        });
        seen.set(runId, await watch(runId));
      }
    };
    await Promise.all(Array.from({ length: atOnce }, lane));
    const seconds = Math.round((performance.now() - began) / 1_000);
    over.abort();
    const mischief = await trouble;

    expect(seen.size).toBe(runs);
    // One session a run, one end a session. A server whose connection was cut before it had handed a run over leaves an
    // expired snapshot behind, and the client begins again.
    const { rows } = await observer.pool.query(
      `SELECT count(*)::int AS ends, count(DISTINCT session)::int AS sessions FROM waymark.snapshots WHERE status <> $1`,
      [code.pending],
    );
    expect(rows).toEqual([{ ends: runs, sessions: runs }]);
    for (const [runId, { text, ends, status }] of seen) {
      expect({ runId, text, ends, status }).toEqual({
        runId,
        text: Array.from({ length: steps }, (_, step) => `${step};`).join(''),
        ends: 1,
        status: 'succeeded',
      });
    }
    const { store } = observer.app;
    if (store === undefined || !('maintenance' in store)) throw new Error('No store.');
    expect(await store.maintenance?.verify()).toEqual([]);
    expect(await store.runs?.listRuns()).toEqual([]);
    expect(await observer.engine.deadLetters()).toEqual([]);
    await expect.poll(async () => (await observer.engine.status()).waiting).toBe(0);
    if (runs >= 500) {
      const takenOver = [...seen.values()].filter(({ changes }) => changes > 0).length;
      const perSecond = Math.round(runs / seconds);
      console.info(JSON.stringify({ runs, seconds, perSecond, takenOver, ...mischief }));
    }
    expect(mischief.kills).toBeGreaterThan(0);
  },
  minutes * 60_000,
);

interface Watched {
  /** What the run said since its last takeover. */
  readonly text: string;
  readonly ends: number;
  readonly status: string;
  /** How often another worker went on with it. */
  readonly changes: number;
}

/** Watches a run to its end, coming back with the last id when the connection breaks. */
async function watch(runId: string): Promise<Watched> {
  let text = '';
  let after: string | undefined;
  let attempt = '';
  let changes = 0;
  for (;;) {
    try {
      for await (const event of observer.app
        .agent('echo')
        .watch(runId, { ...(after && { after }) })) {
        if (event.type === 'end') {
          return { text, ends: 1, status: event.snapshot.status, changes };
        }
        after = event.id;
        if (event.type === 'reset') {
          text = '';
          changes++;
        } else {
          // A run that changed hands before the first event was read shows no reset.
          const [of = ''] = event.id.split('.');
          if (attempt !== '' && of !== attempt) text = '';
          attempt = of;
          text += (event.chunk.modelChunk?.content ?? [])
            .map((part) => ('text' in part ? part.text : ''))
            .join('');
        }
      }
    } catch {
      await sleep(100);
    }
  }
}

async function firstRun(sessionId: string): Promise<string | undefined> {
  const { items } = await observer.app
    .agent('echo')
    .listSnapshots(sessionId, { includeOrphaned: true });
  return items.find(({ status }) => status !== 'expired')?.snapshotId;
}

/** Tries until it succeeds, as a client does while a database restarts. */
async function persist(fn: () => Promise<string | undefined>): Promise<string> {
  for (;;) {
    try {
      const value = await fn();
      if (value !== undefined) return value;
    } catch {
      // Busy with what the last try has begun, or nobody there.
    }
    await sleep(100);
  }
}
