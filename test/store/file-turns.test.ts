import {
  appendFile,
  mkdir,
  readdir,
  readFile,
  rm,
  stat,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createLiveRuns } from '../../src/agent/persistence/host.ts';
import { StopControl } from '../../src/agent/turn/stop.ts';
import { letOthersRun } from '../../src/core/platform.ts';
import { systemClock } from '../../src/core/time.ts';
import { emptyState, hashState } from '../../src/session/session-state.ts';
import { readTree } from '../support/read-tree.ts';
import { failWritesOf } from './file-intercept.ts';
import { setUpFileStores } from './file-support.ts';

const files = setUpFileStores();
const open = files.open;

const runFiles = (): Promise<readonly string[]> => readdir(join(files.directory, 'runs'));
const names = (count: number, of: string): readonly string[] =>
  Array.from({ length: count }, (_, no) => `${of}-${no}`);

describe('the pointer of a run', () => {
  test('is removed when the run ends', async () => {
    const { turn, claim, commit, runs } = open();
    await turn('s', { text: 'something private' });
    expect(await runFiles()).toEqual([]);
    const held = await claim('s');
    expect(await runFiles()).toEqual([`${held.runId}.json`]);
    expect(await runs.listRuns()).toMatchObject([{ runId: held.runId }]);
    expect(await open().runs.listRuns()).toMatchObject([{ runId: held.runId }]);
    await commit(held, { text: 'more' });
    expect(await runFiles()).toEqual([]);
    expect(await open().textsOf({ sessionId: 's' })).toHaveLength(4);
  });

  test('is not removed while another process has a run in it', async () => {
    const [mine, theirs] = [open({ durability: 'normal' }), open({ durability: 'normal' })];
    for (const name of names(10, 's')) await mine.turn(name);
    const held = [];
    for (const name of names(10, 's')) held.push(await theirs.claim(name));
    for (const name of names(80, 't')) await mine.turn(name);
    for (const run of held) expect(await theirs.runs.heartbeat(run)).toBe('held');
    expect(await open().runs.listRuns()).toHaveLength(10);
    for (const run of held) await theirs.commit(run, { text: 'theirs' });
    for (const name of names(10, 's')) {
      expect(await mine.textsOf({ sessionId: name })).toContain('THEIRS');
    }
  });

  test('may be removed by hand: the turn is saved, and the next one is taken', async () => {
    const { turn, claim, commit, textsOf } = open();
    await turn('s');
    const held = await claim('s');
    await rm(join(files.directory, 'runs'), { recursive: true });
    await commit(held, { text: 'saved' });
    await turn('s', { text: 'on' });
    expect(await textsOf({ sessionId: 's' })).toHaveLength(6);
    expect(await open().maintenance.verify()).toEqual([]);
  });
});

describe('what a process knows between its turns', () => {
  test('is not what others have done meanwhile, also when somebody removes the lock', async () => {
    const [first, second] = [open(), open()];
    await first.turn('s', { text: 'one' });
    for (let round = 0; round < 3; round++) {
      await rm(join(files.directory, 'lock'));
      await second.turn('s', { text: 'other' });
      await first.turn('s', { text: 'one' });
      await rm(join(files.directory, 'lock'));
      await first.turn('s', { text: 'one' });
    }
    expect(await second.textsOf({ sessionId: 's' })).toHaveLength(20);
    expect(await open().maintenance.verify()).toEqual([]);
  });

  test('is not what hands have done: a journal that was put back is read again', async () => {
    const { turn, textsOf } = open();
    await turn('s', { text: 'one' });
    const journal = join(files.directory, 'sessions/_/chat/s/journal.jsonl');
    const { size } = await stat(journal);
    await turn('s', { text: 'two' });
    await truncate(journal, size);
    expect(await textsOf({ sessionId: 's' })).toEqual(['one', 'ONE']);
    await turn('s', { text: 'three' });
    expect(await open().textsOf({ sessionId: 's' })).toEqual(['one', 'ONE', 'three', 'THREE']);
  });
});

test('many calls at once, with and without something to sync, do not get into each other’s way', async () => {
  const { turn, claim, runs, commit } = open();
  const held = await Promise.all(names(20, 'held').map((name) => claim(name)));
  const sessions = names(20, 's');
  const beats = held.map((run) => runs.heartbeat(run));
  await Promise.all([...beats, ...sessions.map((name) => turn(name))]);
  await Promise.all(
    held.flatMap((run, no) => [runs.heartbeat(run), turn(sessions[no] ?? ''), commit(run)]),
  );
  const { textsOf, maintenance } = open();
  for (const name of sessions) expect(await textsOf({ sessionId: name })).toHaveLength(4);
  for (const name of names(20, 'held')) {
    expect(await textsOf({ sessionId: name })).toHaveLength(2);
  }
  expect(await maintenance.verify()).toEqual([]);
});

test('a session whose first line was cut short has never been, and can be begun', async () => {
  const journal = join(files.directory, 'sessions/_/chat/s/journal.jsonl');
  await open().turn('t');
  for (const left of ['', '{"waymark":6,"id":"01a1']) {
    await mkdir(dirname(journal), { recursive: true });
    await appendFile(journal, left);
    const { turn, textsOf } = open();
    await turn('s', { text: 'hello' });
    expect(await textsOf({ sessionId: 's' })).toEqual(['hello', 'HELLO']);
    expect(await open().maintenance.verify()).toEqual([]);
    await rm(dirname(journal), { recursive: true });
  }
});

test('files of a new session that were cut anywhere, as by a process that dies, are not damaged', async () => {
  const { claim, runs, turn } = open();
  const held = await claim('s', {
    mode: 'accepted',
    requests: [{ key: 'a'.repeat(64), digest: 'd' }],
  });
  await runs.checkpoint(held, {
    state: emptyState,
    stateHash: hashState(emptyState),
    inputsDone: 0,
    midTurn: false,
    events: [{ attempt: 1, seq: 0, chunk: {} }],
  });
  await turn('t');
  const written = [...(await readTree(files.directory)).keys()].filter((name) =>
    /^(sessions|runs|requests)\//.test(name),
  );
  expect(new Set(written.map((name) => name.split('/', 1)[0])).size).toBe(3);
  for (const name of written) {
    const path = join(files.directory, name);
    const whole = await readFile(path);
    for (let size = whole.length - 1; size >= 0; size -= 1 + Math.floor(size / 40)) {
      await writeFile(path, whole.subarray(0, size));
      const next = open();
      const faults = await next.maintenance.verify();
      expect(
        faults.filter(({ kind }) => kind !== 'unfinished'),
        `${name} at ${size}`,
      ).toEqual([]);
      await next.timeline.listSessions({ agent: 'chat' });
      await next.runs.listRuns();
      await next.runs.getRequest('a'.repeat(64));
      await next.events.read({ agent: 'chat' }, held.runId, { limit: 10 });
      await writeFile(path, whole);
    }
  }
});

test('a process that cannot write its heartbeats stays at work: it does not try again without end', async () => {
  const { store, claim } = open();
  const live = createLiveRuns({ clock: systemClock, ttl: 60_000 });
  for (const name of names(3, 's')) {
    live.add({
      ref: await claim(name),
      store,
      control: new StopControl(),
      steering: { isHinted: false },
      recoverable: () => true,
    });
  }
  const failed = await failWritesOf('heartbeatAt', 200, async () => {
    await live.beat();
    await letOthersRun();
  });
  expect(failed).toBeGreaterThan(0);
  expect(failed).toBeLessThan(30);
});
