import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { bundleChild } from '../support/bundle-child.ts';
import { endProcesses, startProcess, type TestProcess } from '../support/child-process.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { openPlace, type Place } from './support/agents.ts';
import { randomOf } from './support/random.ts';

/** How often a process is killed on each store; ROUNDS=n overrides it. */
const kills = Number(process.env.ROUNDS ?? (process.env.LONG === '1' ? 10 : 3));
const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);

let postgres: TestPostgres;
let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-accept-'));
  postgres = await startPostgres();
});
afterEach(endProcesses);
afterAll(async () => {
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
});

const places: Record<string, () => Place> = {
  SQLite: () => ({ kind: 'sqlite', at: join(folder, 'store.db'), clockFile: join(folder, 'a') }),
  files: () => ({ kind: 'file', at: join(folder, 'files'), clockFile: join(folder, 'b') }),
  Postgres: () => ({
    kind: 'postgres',
    at: postgres.connectionString,
    clockFile: join(folder, 'c'),
  }),
};

for (const [name, placeOf] of Object.entries(places)) {
  test(`S670: of two processes one is killed ${kills} × while it accepts background runs on ${name}: every run that was told ends, under one id`, async () => {
    const place = placeOf();
    const random = randomOf(seed);
    const told = new Map<string, Set<string>>();
    const failed: string[] = [];
    const note = (lines: readonly string[]): void => {
      for (const line of lines) {
        const [word, requestId = '', runId = ''] = line.split(' ');
        if (word === 'told') told.set(requestId, (told.get(requestId) ?? new Set()).add(runId));
        if (word === 'failed') failed.push(line);
      }
    };
    let victim = await accepting(place);
    let retried = 0;
    for (let round = 0; round < kills; round++) {
      const next = await accepting(place);
      const before = victim.lines.length;
      const said = (word: string): string[] => wordsOf(victim, word, before);
      victim.send('lanes');
      const enough = Math.floor(random() * 8);
      await victim.when(() => said('told').length >= enough || undefined, `${enough} answers`);
      await sleep(random() * 4);
      await victim.end();
      const asked = said('asks');
      for (const requestId of asked) next.send(`ask ${requestId}`);
      const answers = (): number => wordsOf(next, 'told').length + wordsOf(next, 'failed').length;
      await next.when(() => answers() >= asked.length || undefined, `${asked.length} answers`);
      note(victim.lines);
      retried += asked.length;
      victim = next;
    }
    note(victim.lines);
    expect(failed).toEqual([]);
    expect([...told].filter(([, ids]) => ids.size !== 1)).toEqual([]);
    const ids = [...told.values()].flatMap((each) => [...each]);
    await expectEnds(place, ids);
    console.info(`${name}, ${kills} × kill -9 while accepting (seed ${seed}):`, {
      retried,
      runs: ids.length,
    });
  }, 1_800_000);
}

/** All runs end, in the process that is left. */
async function expectEnds(place: Place, ids: readonly string[]): Promise<void> {
  const store = await openPlace(place);
  try {
    for (const snapshotId of ids) {
      const read = async (): Promise<string | undefined> =>
        (await store.getSnapshot({ agent: 'desk' }, { snapshotId }))?.status;
      await expect.poll(read, { message: `the end of ${snapshotId}` }).toMatch(/succeeded|failed/);
    }
    expect(await store.maintenance?.verify()).toEqual([]);
  } finally {
    await store.close?.();
  }
}

async function accepting(place: Place): Promise<TestProcess> {
  const script = bundleChild(new URL('./accept-child.ts', import.meta.url));
  const child = startProcess([script, JSON.stringify(place)]);
  await child.take((line) => line === 'ready' || undefined, '"ready"');
  return child;
}

/** The second words of the lines that begin with this one. */
function wordsOf({ lines }: TestProcess, word: string, from = 0): string[] {
  const said = lines.slice(from).map((line) => line.split(' '));
  return said.flatMap(([first, second = '']) => (first === word ? [second] : []));
}
