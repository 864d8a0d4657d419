import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { createIds } from '../../src/core/id.ts';
import {
  addMessage,
  type ChildTask,
  childScope,
  openShared,
  type SharedStore,
} from './store-child.ts';

const newId = createIds(systemClock);
const script = join(import.meta.dirname, 'store-child.ts');

function start(shared: SharedStore, task: ChildTask): ChildProcess {
  const args = [script, JSON.stringify(shared), JSON.stringify(task)];
  return spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
}

function ended(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve) => child.once('exit', resolve));
}

function nextLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => child.stdout?.once('data', (data) => resolve(String(data))));
}

/** What several processes on one store must not do to each other. */
export function storeProcesses(
  name: string,
  share: () => Promise<{ readonly shared: SharedStore; readonly close: () => Promise<void> }>,
  { processes, abortWithin }: { readonly processes: number; readonly abortWithin: number },
): void {
  describe(`several processes on ${name}`, () => {
    test('lose no update, and none is shown a lock', async () => {
      const { shared, close } = await share();
      const store = openShared(shared);
      try {
        await store.open?.();
        const count = 25;
        const names = Array.from({ length: processes - 1 }, (_, n) => `child ${n}`);
        const children = names.map((each) =>
          start(shared, { kind: 'add', sessionId: 's', name: each, count }),
        );
        const exits = children.map(ended);
        for (let n = 0; n < count; ) {
          if (await addMessage(store, 's', `parent ${n}`)) n++;
          else await systemClock.sleep(1);
        }
        expect(await Promise.all(exits)).toEqual(names.map(() => 0));
        const read = await store.getSnapshot(childScope, { sessionId: 's' });
        const words = (read?.state?.messages ?? []).map(({ content: [part] }) =>
          part !== undefined && 'text' in part ? part.text : '',
        );
        for (const each of ['parent', ...names]) {
          const own = words.filter((word) => word.startsWith(`${each} `));
          expect(own).toEqual(Array.from({ length: count }, (_, n) => `${each} ${n}`));
        }
        expect(words).toHaveLength(processes * count);
        expect(await store.maintenance?.verify()).toEqual([]);
      } finally {
        await store.close?.();
        await close();
      }
    }, 120_000);

    test('one that is killed leaves a whole store, and every turn it was told of', async () => {
      const { shared, close } = await share();
      const store = openShared(shared);
      try {
        await store.open?.();
        const rounds = process.env.LONG === '1' ? 40 : 4;
        for (let round = 0; round < rounds; round++) {
          const sessionId = `s${round}`;
          const task = { kind: 'add', sessionId, name: 'child', count: 100_000 } as const;
          const child = start(shared, task);
          await nextLine(child);
          // Somewhere in the middle of something.
          await systemClock.sleep(20 + ((round * 37) % 90));
          const exit = ended(child);
          child.kill('SIGKILL');
          await exit;
          const read = await store.getSnapshot(childScope, { sessionId });
          const words = read?.state?.messages?.map(({ content: [part] }) => part) ?? [];
          expect(words).toEqual(words.map((_, n) => ({ text: `child ${n}` })));
          expect(words.length).toBeGreaterThan(0);
          expect(await store.maintenance?.verify()).toEqual([]);
        }
      } finally {
        await store.close?.();
        await close();
      }
    }, 300_000);

    test('an abort from another process reaches the worker', async () => {
      const { shared, close } = await share();
      const store = openShared(shared);
      try {
        await store.open?.();
        const runId = newId();
        const held = await store.runs?.claim(childScope, {
          runId,
          sessionId: 's',
          from: 'head',
          mode: 'accepted',
          inputs: [],
          ttl: 60_000,
          worker: 'parent',
        });
        if (held === undefined) expect.fail('not claimed');
        const child = start(shared, { kind: 'abort', runId });
        const exit = ended(child);
        expect(await nextLine(child)).toBe('ready\n');
        const stopped = new Promise<number>((resolve) => {
          const leave = store.abort?.onChange(runId, () => {
            void store.runs?.heartbeat(held).then((signal) => {
              if (signal !== 'stop') return;
              leave?.();
              resolve(Date.now());
            });
          });
        });
        // Lets the listener get ready, as a worker's long since is.
        await systemClock.sleep(300);
        const line = nextLine(child);
        child.stdin?.end('go\n');
        const asked = Number(await line);
        expect((await stopped) - asked).toBeLessThan(abortWithin);
        expect(await exit).toBe(0);
      } finally {
        await store.close?.();
        await close();
      }
    }, 60_000);
  });
}
