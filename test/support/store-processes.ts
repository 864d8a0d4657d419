import { afterEach, describe, expect, test } from 'vitest';
import { createIds } from '../../src/core/id.ts';
import { systemClock } from '../../src/core/time.ts';
import { bundleChild } from './bundle-child.ts';
import { endProcesses, startProcess, type TestProcess } from './child-process.ts';
import { openShared, type SharedStore } from './shared-store.ts';
import { someMoment } from './some-moment.ts';
import { addMessage, type ChildTask, childScope } from './store-child.ts';

const newId = createIds(systemClock);
const script = new URL('./store-child.ts', import.meta.url);

function start(shared: SharedStore, task: ChildTask): TestProcess {
  return startProcess([bundleChild(script), JSON.stringify(shared), JSON.stringify(task)]);
}

/** What several processes on one store must not do to each other. */
export function storeProcesses(
  name: string,
  share: () => Promise<{ readonly shared: SharedStore; readonly close: () => Promise<void> }>,
  { processes }: { readonly processes: number },
): void {
  describe(`several processes on ${name}`, () => {
    afterEach(endProcesses);

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
        for (let n = 0; n < count; ) {
          if (await addMessage(store, 's', `parent ${n}`)) n++;
          else await systemClock.sleep(1);
        }
        for (const child of children) await child.finished();
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
    });

    test('one that is killed leaves a whole store, and every turn it was told of', async () => {
      const { shared, close } = await share();
      const store = openShared(shared);
      try {
        await store.open?.();
        const rounds = process.env.LONG === '1' ? 10 : 4;
        for (let round = 0; round < rounds; round++) {
          const sessionId = `s${round}`;
          const task = { kind: 'add', sessionId, name: 'child', count: 100_000 } as const;
          const child = start(shared, task);
          await child.take((line) => line === 'begun' || undefined, 'first turn');
          await someMoment(round);
          await child.end();
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
    });

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
        await child.take((line) => line === 'ready' || undefined, '"ready"');
        const stopped = new Promise<void>((resolve) => {
          const leave = store.abort?.onChange(runId, () => {
            void store.runs?.heartbeat(held).then((signal) => {
              if (signal !== 'stop') return;
              leave?.();
              resolve();
            });
          });
        });
        child.send('go');
        await stopped;
        await child.finished();
      } finally {
        await store.close?.();
        await close();
      }
    });
  });
}
