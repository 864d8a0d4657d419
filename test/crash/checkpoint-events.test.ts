import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { WatchEvent } from '../../src/api/types.ts';
import { waymark } from '../../src/app.ts';
import { bundleChild } from '../support/bundle-child.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { type PostgresClock, postgresClock } from '../support/postgres-clock.ts';
import { sharedClock } from '../support/shared-clock.ts';
import { openPlace, type Place } from './support/agents.ts';
import { defineNoter } from './support/noter.ts';

let postgres: TestPostgres;
let clock: PostgresClock;
let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-checkpoint-'));
  postgres = await startPostgres();
  clock = await postgresClock(postgres.connectionString);
});
afterAll(async () => {
  await clock.close();
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
});

const places: Record<string, () => Place> = {
  SQLite: () => ({ kind: 'sqlite', at: join(folder, 'store.db'), clockFile: join(folder, 'a') }),
  files: () => ({ kind: 'file', at: join(folder, 'files'), clockFile: join(folder, 'b') }),
  Postgres: () => ({ kind: 'postgres', at: clock.connectionString, clockFile: join(folder, 'c') }),
};

for (const [name, placeOf] of Object.entries(places)) {
  test(`S168: the events of a checkpoint outlive a kill -9 right after it, on ${name}`, async () => {
    const place = placeOf();
    const snapshotId = await runUntilKilled(place);
    // An hour later by the clock of the store, another process takes the run over.
    sharedClock(place.clockFile).advance(3_600_000);
    await clock.advance(3_600_000);
    const store = await openPlace(place);
    await using app = closing(waymark({ store }));
    const noter = defineNoter(app.app, ['Done.']);
    const seen: string[] = [];
    for await (const event of noter.watch(snapshotId)) seen.push(...textsOf(event));
    expect(seen).toEqual([
      'start',
      'Let me ',
      'note that.',
      'toolRequest',
      'toolResponse',
      'reset 2',
      'Done.',
      'turnEnd stop',
      'end succeeded',
    ]);
  });
}

/** Runs the child until it has killed itself; gives the id of its run. */
async function runUntilKilled(place: Place): Promise<string> {
  const script = bundleChild(new URL('./checkpoint-child.ts', import.meta.url));
  const child = spawn(process.execPath, [script, JSON.stringify(place)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let told = '';
  child.stdout.on('data', (data: Buffer) => {
    told += data.toString();
  });
  const [, signal] = await once(child, 'close');
  expect(signal).toBe('SIGKILL');
  return told.trim();
}

function textsOf(event: WatchEvent): string[] {
  if (event.type === 'reset') return [`reset ${event.attempt}`];
  if (event.type === 'end') return [`end ${event.snapshot.status}`];
  const { chunk } = event;
  if (chunk.turnStart) return ['start'];
  if (chunk.turnEnd) return [`turnEnd ${chunk.turnEnd.finishReason}`];
  return (chunk.modelChunk?.content ?? []).map((part) =>
    'text' in part ? part.text : (Object.keys(part)[0] ?? ''),
  );
}

function closing<A extends { close(options: { grace: number }): Promise<void> }>(app: A) {
  return { app, [Symbol.asyncDispose]: () => app.close({ grace: 0 }) };
}
