import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { bundleChild } from '../support/bundle-child.ts';
import { endProcesses, startProcess, type TestProcess } from '../support/child-process.ts';
import { movableClock } from '../support/movable-clock.ts';
import { startPostgres } from '../support/postgres.ts';
import type { SharedStore } from '../support/shared-store.ts';
import { callCost, openBudgetApp, openShared, takeTurn } from './support/budget-app.ts';

afterEach(endProcesses);

const script = new URL('./budget-child.ts', import.meta.url);

async function startChild(
  shared: SharedStore,
  turns: number,
  answers: 'answers' | 'hangs',
): Promise<TestProcess> {
  const child = startProcess([bundleChild(script), JSON.stringify(shared), `${turns}`, answers]);
  await child.take((line) => (line === 'ready' ? line : undefined), 'readiness');
  return child;
}

/** Runs 50 turns in two processes against a budget of ten calls. */
async function spendTogether(shared: SharedStore): Promise<void> {
  const children = await Promise.all([1, 2].map(() => startChild(shared, 25, 'answers')));
  for (const child of children) child.send('go');
  const ends: string[] = [];
  let calls = 0;
  for (const child of children) {
    const told = await child.take((line) => (line.startsWith('[') ? line : undefined), 'result');
    ends.push(...(JSON.parse(told) as string[]));
    calls += child.lines.filter((line) => line === 'call').length;
    await child.finished();
  }
  expect(calls).toBe(10);
  expect(ends.filter((end) => end === 'stop')).toHaveLength(10);
  expect(ends.filter((end) => end === 'RESOURCE_EXHAUSTED')).toHaveLength(40);
  const store = openShared(shared);
  const { cost } = (await store.spend?.total({ owner: 'ann' })) ?? {};
  expect(cost).toEqual({ USD: 10 * callCost });
  await store.close?.();
}

async function inFolder(work: (path: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-budgets-'));
  try {
    await work(join(folder, 'store.db'));
  } finally {
    await rm(folder, { recursive: true });
  }
}

const title =
  'S690 S691 50 concurrent turns in two processes make the ten calls that a budget allows';

test(`${title} (sqlite)`, async () => {
  await inFolder((path) => spendTogether({ kind: 'sqlite', path }));
});

test(`${title} (postgres)`, async () => {
  const postgres = await startPostgres();
  try {
    const { connectionString } = postgres;
    await spendTogether({ kind: 'postgres', connectionString, schema: 'budgets' });
  } finally {
    await postgres.stop();
  }
});

test('S694 calls of a process that was killed count as spent, and nobody waits for them for long', async () => {
  await inFolder(async (path) => {
    const child = await startChild({ kind: 'sqlite', path }, 8, 'hangs');
    child.send('go');
    await child.when(
      () => (child.lines.filter((line) => line === 'call').length === 8 ? true : undefined),
      'eight calls',
    );
    await child.end();
    const { clock, advance } = movableClock();
    const store = sqliteStore(path, { clock });
    let calls = 0;
    const { app, chat } = openBudgetApp({
      store,
      clock,
      onCall: () => {
        calls++;
      },
    });
    expect([await takeTurn(chat), await takeTurn(chat)]).toEqual(['stop', 'stop']);
    const third = takeTurn(chat);
    let ended = false;
    void third.then(() => {
      ended = true;
    });
    expect(ended).toBe(false);
    advance(600_001);
    expect(await third).toBe('RESOURCE_EXHAUSTED');
    // The calls are lost by now, so this one does not wait.
    expect(await takeTurn(chat)).toBe('RESOURCE_EXHAUSTED');
    expect(calls).toBe(2);
    await app.close();
  });
});
