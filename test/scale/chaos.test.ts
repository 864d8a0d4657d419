import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient } from '../../src/client/index.ts';
import { openQueueApp, type QueueApp } from '../engine/support/agents.ts';
import { type Child, endChildren, startChild } from '../engine/support/processes.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { makeTrouble, seeded } from './chaos.ts';

const runs = process.env.SCALE === '1' ? 10_000 : process.env.LONG === '1' ? 500 : 24;
const minutes = runs === 10_000 ? 60 : runs === 500 ? 14 : 3;
const steps = 3;
const atOnce = 20;

let postgres: TestPostgres;
let observer: QueueApp;

beforeAll(async () => {
  postgres = await startPostgres({ maxConnections: 200 });
  observer = openQueueApp({ connectionString: postgres.connectionString, work: false });
  await observer.app.ready();
});
afterAll(async () => {
  await endChildren();
  await observer.close(0);
  await postgres.stop();
});

test(
  `${runs} runs on four workers and two servers end exactly once, whatever dies`,
  async () => {
    const { connectionString } = postgres;
    const engine = { attempts: 1_000, slots: 8 };
    const startWorker = (): Promise<Child> =>
      startChild({ role: 'worker', connectionString, engine });
    const workers = await Promise.all([1, 2, 3, 4].map(startWorker));
    const servers = await Promise.all(
      [1, 2].map(() => startChild({ role: 'server', connectionString })),
    );
    const agents = servers.map(({ url }) => createClient({ url }).agent('echo'));
    const over = new AbortController();
    const trouble = makeTrouble({
      postgres,
      workers,
      startWorker,
      everyMs: runs < 100 ? 700 : 2_000,
      random: seeded(7),
      signal: over.signal,
    });

    const seen = new Map<string, Watched>();
    let next = 0;
    const lane = async (): Promise<void> => {
      for (let n = next++; n < runs; n = next++) {
        const agent = agents[n % agents.length];
        if (agent === undefined) throw new Error('No server.');
        const runId = await persist(async () => {
          const input = `{"ms":${n % 7 === 0 ? 200 : 5},"steps":${steps},"n":${n}}`;
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
    over.abort();
    const mischief = await trouble;

    expect(seen.size).toBe(runs);
    const { items } = await observer.app.agent('echo').listSnapshots('run-0');
    expect(items).toHaveLength(1);
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
    await expect
      .poll(async () => (await observer.engine.status()).waiting, { timeout: 20_000 })
      .toBe(0);
    if (process.env.LONG === '1' || process.env.SCALE === '1') console.info(mischief);
    expect(mischief.kills).toBeGreaterThan(0);
  },
  minutes * 60_000,
);

interface Watched {
  /** What the run said since its last takeover. */
  readonly text: string;
  readonly ends: number;
  readonly status: string;
}

/** Watches a run to its end, coming back with the last id when the connection breaks. */
async function watch(runId: string): Promise<Watched> {
  let text = '';
  let after: string | undefined;
  let attempt = '';
  for (;;) {
    try {
      for await (const event of observer.app
        .agent('echo')
        .watch(runId, { ...(after && { after }) })) {
        if (event.type === 'end') return { text, ends: 1, status: event.snapshot.status };
        after = event.id;
        if (event.type === 'reset') text = '';
        else {
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
  return items[0]?.snapshotId;
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
