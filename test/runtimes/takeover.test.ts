import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Agent } from '../../src/agent/contract/agent.ts';
import type { App } from '../../src/app.ts';
import { defineContractAgent } from '../../src/testing/engine-contract/contract-agent.ts';
import {
  type ContractProcess,
  startContractProcess,
} from '../../src/testing/engine-contract/contract-process.ts';
import { claimTtl, type Deployment, openDeployed } from '../engine/support/contract-child.ts';
import { bundleChild } from '../support/bundle-child.ts';
import { eventually } from '../support/eventually.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { type PostgresClock, postgresClock } from '../support/postgres-clock.ts';
import { sharedClock } from '../support/shared-clock.ts';
import { type RuntimeName, runtimes } from './commands.ts';

const pairs: readonly (readonly [RuntimeName, RuntimeName])[] = [
  ['node', 'bun'],
  ['bun', 'deno'],
  ['deno', 'node'],
  ['bun', 'node'],
  ['deno', 'bun'],
  ['node', 'deno'],
];

/** Other versions of Node differ in their SQLite, not in how they speak to Postgres. */
const pairsOfNode: typeof pairs = [
  ['node22', 'node'],
  ['node', 'node22'],
];

const script = new URL('../engine/support/contract-child.ts', import.meta.url);
const processes: ContractProcess[] = [];
let folder: string;
let app: App | undefined;
let postgres: TestPostgres;
let clock: PostgresClock;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-runtimes-'));
  postgres = await startPostgres();
  clock = await postgresClock(postgres.connectionString);
});
afterEach(async () => {
  for (const each of processes.splice(0)) {
    each.kill();
    await each.ended;
  }
  await app?.close();
  app = undefined;
});
afterAll(async () => {
  await clock.close();
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Starts a process of a deployment in a runtime. */
async function start(runtime: RuntimeName, deployment: Deployment): Promise<ContractProcess> {
  const made = await startContractProcess(
    bundleChild(script),
    [JSON.stringify(deployment)],
    runtimes[runtime],
  );
  processes.push(made);
  return made;
}

/** A run that one runtime begins, is killed in, and another one finishes. */
async function takeOver(
  [from, to]: readonly [RuntimeName, RuntimeName],
  deployment: Deployment,
  expire: () => Promise<void> | void,
): Promise<void> {
  const held = await mkdtemp(join(folder, 'held-'));
  app = openDeployed(deployment, { work: false });
  const agent: Agent = defineContractAgent(app);
  await app.ready();
  const first = await start(from, deployment);
  const runId = await first.run({ waitWhile: held });
  await eventually(async () => {
    for await (const event of agent.watch(runId)) if (event.type === 'chunk') return true;
    return false;
  }, `${from} to begin`);
  first.kill();
  await first.ended;
  await rm(held, { recursive: true });
  await expire();
  await start(to, deployment);
  const ended = await agent.wait(runId);
  expect(ended.status).toBe('succeeded');
  expect(ended.state?.messages?.map(({ role }) => role)).toEqual(['user', 'model']);
  const { store } = app;
  if (store === undefined || !('maintenance' in store)) expect.fail('no store');
  expect(await store.maintenance?.verify()).toEqual([]);
}

describe('after kill -9', () => {
  test.each([...pairs, ...pairsOfNode])('SQLite: what %s began, %s finishes', async (...pair) => {
    const at = await mkdtemp(join(folder, 'store-'));
    const clockFile = join(at, 'clock');
    await takeOver(
      pair,
      { engine: 'local', store: 'sqlite', path: join(at, 'store.db'), clockFile },
      () => sharedClock(clockFile).advance(2 * claimTtl),
    );
  });

  test.each(pairs)('Postgres: what %s began, %s finishes', async (...pair) => {
    const schema = `from_${pair.join('_to_')}`;
    const { connectionString } = clock;
    await takeOver(pair, { engine: 'local', store: 'postgres', connectionString, schema }, () =>
      clock.advance(2 * claimTtl),
    );
  });
});
