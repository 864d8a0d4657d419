import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { waymark } from '../../src/app.ts';
import { fileStore } from '../../src/store/file/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { bundleChild } from '../support/bundle-child.ts';
import { endProcesses, startProcess } from '../support/child-process.ts';
import { eventually } from '../support/eventually.ts';
import { sharedClock } from '../support/shared-clock.ts';

afterEach(endProcesses);

const hours = process.env.LONG === '1' ? 40 : 4;

test.each(['sqlite', 'file'])(
  'S890 processes that are killed at any moment start one run for each time: %s',
  async (kind) => {
    const folder = await mkdtemp(join(tmpdir(), 'waymark-schedule-'));
    const [path, time, log] = ['store', 'time', 'log'].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    const script = bundleChild(new URL('./support/schedule-child.ts', import.meta.url));
    const start = async () => {
      const args = JSON.stringify({ kind, path, time, log });
      const child = startProcess([script, args], { mayDie: true });
      await child.take((line) => line === 'ready', '"ready"');
      return child;
    };
    const { clock, advance } = sharedClock(time);
    const store = kind === 'file' ? fileStore(path, { clock }) : sqliteStore(path, { clock });
    const watcher = waymark({ store, clock, work: false });
    const agent = watcher.defineCustomAgent({ name: 'writer' }, async () => {});
    const sessions = async () => (await agent.listSessions({ limit: 100 })).items;
    const times = async () =>
      (await store.runs?.listRuns({ agent: 'waymark.schedules/times' })) ?? [];
    const settled = async () => {
      let isExpired = false;
      await eventually(async () => {
        const waiting = await times();
        const open = (await store.runs?.listRuns({ agent: 'writer' })) ?? [];
        const isHeld = open.length > 0 || waiting.some(({ worker }) => worker !== 'schedule');
        // Lets the claims of processes that were killed expire. More would skip a time.
        if (isHeld && !isExpired) advance(6_000);
        isExpired ||= isHeld;
        return !isHeld && waiting.length === 1 && waiting[0]?.expired === false;
      }, 'the end of the runs');
    };
    const children = [await start(), await start()];
    await settled();
    for (let hour = 1; hour <= hours; hour++) {
      advance(3_600_000);
      // The first polls find the time; the kill comes before, while or after a process starts the run.
      await pause((hour * 17) % 60);
      await children.shift()?.end();
      children.push(await start());
      await eventually(async () => (await sessions()).length >= hour, `run ${hour}`);
      await settled();
    }
    const found = await sessions();
    expect(found).toHaveLength(hours);
    for (const { sessionId } of found) {
      const session = await agent.getSession(sessionId);
      expect(session?.state?.messages?.map(({ role }) => role)).toEqual(['user', 'model']);
    }
    const begun = (await readFile(log, 'utf8')).trim().split('\n');
    expect(new Set(begun)).toEqual(new Set(found.map(({ sessionId }) => sessionId)));
    await endProcesses();
    await watcher.close();
    await rm(folder, { recursive: true });
  },
  300_000,
);
