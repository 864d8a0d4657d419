import { afterEach, describe, expect, test } from 'vitest';
import { waymark } from '../../../src/app.ts';
import type { AppOptions } from '../../../src/app-options.ts';
import type { WaymarkError } from '../../../src/core/error.ts';
import type { Schedule } from '../../../src/engine/schedule.ts';
import type { RunRecord, Store } from '../../../src/store/contract/store.ts';
import { scriptedModel } from '../../../src/testing/scripted-model.ts';
import type { OpenedStore } from '../../../src/testing/store-contract/kit.ts';
import { eventually } from '../../support/eventually.ts';
import { movableClock } from '../../support/movable-clock.ts';

const minute = 60_000;
const hour = 60 * minute;
const hourly = { key: 'hourly', every: hour, agent: 'writer', input: 'Write.' } satisfies Schedule;

/** The tests of schedules, for each store. */
export function scheduleSuite(
  name: string,
  openStore: () => Promise<OpenedStore>,
  engineOf?: (store: Store) => AppOptions['engine'],
): void {
  describe(`schedules: ${name}`, () => {
    let closes: (() => Promise<unknown>)[] = [];
    afterEach(async () => {
      for (const close of closes.toReversed()) await close();
      closes = [];
    });

    async function setUp() {
      const opened = await openStore();
      const { clock, advance } = movableClock();
      closes.push(() => opened.close());
      await opened.store.open?.();
      const calls: string[] = [];
      /** Answers wait while it is set. */
      let held: PromiseWithResolvers<void> | undefined;
      closes.push(async () => held?.resolve());
      const model = scriptedModel({
        patterns: [],
        otherwise: async ({ messages }) => {
          calls.push(JSON.stringify(messages.at(-1)?.content));
          await held?.promise;
          return 'written';
        },
      });
      /** Starts a process of the app. */
      const start = (
        schedules: readonly Schedule[],
        { store = opened.store, ...options }: { store?: Store } & Omit<AppOptions, 'store'> = {},
      ) => {
        const errors: WaymarkError[] = [];
        const app = waymark({
          store: { ...store, close: async () => {} },
          clock,
          model,
          engine: engineOf?.(store),
          onError: (error) => void errors.push(error as WaymarkError),
          ...options,
        } as AppOptions);
        const writer = app.defineAgent({ name: 'writer' });
        for (const each of schedules) app.schedule(each);
        const close = () => app.close({ grace: 1_000 });
        closes.push(close);
        const sessions = async () =>
          (await writer.listSessions({ limit: 100 })).items
            .map(({ sessionId }) => sessionId)
            .sort();
        /** Resolves when the time of each schedule waits in the store. */
        const armed = () =>
          eventually(async () => {
            const found = await waiting(opened.store);
            return schedules.every(({ key, every }) =>
              found.some(
                ({ sessionId, context }) => sessionId === key && context?.times === `${every}`,
              ),
            );
          }, 'the times');
        return { app, writer, errors, close, sessions, armed };
      };
      return {
        store: opened.store,
        clock,
        calls,
        start,
        async pass(ms: number) {
          await opened.advance?.(ms);
          advance(ms);
        },
        hold() {
          held = Promise.withResolvers();
          return () => {
            held?.resolve();
            held = undefined;
          };
        },
        /** Resolves when nothing is due or running any more, and the next time waits. */
        settled: () =>
          eventually(async () => {
            const { runs } = opened.store;
            const open = (await runs?.listRuns()) ?? [];
            return (
              open.length > 0 &&
              open.every(({ worker, expired }) => worker === 'schedule' && !expired)
            );
          }, 'the end of all runs'),
      };
    }

    test('S890 each time starts one run, however many processes there are', async () => {
      const { start, pass, calls, settled } = await setUp();
      const apps = [1, 2, 3].map(() => start([hourly]));
      const [first] = apps as [(typeof apps)[0]];
      await first.armed();
      for (let times = 1; times <= 3; times++) {
        await pass(hour);
        await eventually(async () => (await first.sessions()).length === times, `${times} runs`);
        await settled();
      }
      const sessions = await first.sessions();
      expect(sessions).toHaveLength(3);
      for (const each of sessions) expect(each).toMatch(/^hourly@\d{4}-\d\d-\d\dT\d\d:00:00Z$/);
      expect(calls).toHaveLength(3);
      expect(apps.flatMap(({ errors }) => errors)).toEqual([]);
    });

    test('S891 times that were missed while no process was there start one run', async () => {
      const { start, pass, clock, settled } = await setUp();
      const before = start([hourly]);
      await before.armed();
      await before.close();
      await pass(5.5 * hour);
      const after = start([hourly]);
      await eventually(async () => (await after.sessions()).length === 1, 'the run');
      await settled();
      const [info] = await after.app.listSchedules();
      expect(Date.parse(info?.nextAt ?? '')).toBeGreaterThan(clock.now());
      expect(Date.parse(info?.nextAt ?? '')).toBeLessThanOrEqual(clock.now() + hour);
      expect(await after.sessions()).toEqual([info?.last?.sessionId]);
    });

    test('S892 a schedule that has changed takes effect when the new code starts, and one that was removed starts nothing', async () => {
      const { start, pass, clock, store } = await setUp();
      const before = start([hourly, { ...hourly, key: 'removed' }]);
      await before.armed();
      await before.close();
      const daily: Schedule = { key: 'hourly', every: 24 * hour, agent: 'writer', input: 'Write.' };
      const after = start([daily]);
      await after.armed();
      const midnight = Math.ceil(clock.now() / (24 * hour)) * 24 * hour;
      expect((await after.app.listSchedules())[0]?.nextAt).toBe(at(midnight));
      await pass(midnight - clock.now() + 1_000);
      await eventually(async () => (await after.sessions()).length === 1, 'the run');
      await eventually(async () => (await after.app.listSchedules())[0]?.last !== undefined);
      expect(await after.sessions()).toEqual([`hourly@${at(midnight)}`]);
      // The time of the removed one is deleted after a week.
      await after.close();
      await pass(8 * 24 * hour);
      const last = start([]);
      await eventually(async () => (await waiting(store)).length === 0, 'the sweep');
      expect(await last.sessions()).toHaveLength(1);
    });

    test('S893 a time is skipped and reported while its last run is active, unless `concurrency` allows more', async () => {
      const { start, pass, hold, store } = await setUp();
      const app = start([
        { ...hourly, every: minute },
        { ...hourly, every: minute, key: 'both', concurrency: 2 },
      ]);
      const release = hold();
      await app.armed();
      const of = async (key: string) =>
        (await app.sessions()).filter((id) => id.startsWith(`${key}@`)).length;
      const first = Date.parse((await app.app.listSchedules())[0]?.nextAt ?? '');
      for (let times = 1; times <= 3; times++) {
        await pass(minute);
        await eventually(async () => {
          const found = await waiting(store);
          return (
            found.length === 2 &&
            found.every(({ context }) => context?.due === first + times * minute)
          );
        }, `the times after ${times} runs`);
        expect([await of('hourly'), await of('both')]).toEqual([1, Math.min(times, 2)]);
      }
      await eventually(() => app.errors.length === 3, 'the reports');
      expect(new Set(app.errors.map(({ status }) => status))).toEqual(new Set(['ABORTED']));
      expect(app.errors[0]?.message).toMatch(
        /Schedule "hourly" did not start its run for .*active/,
      );
      release();
    });

    test('S894 a run has the owner, the context and the input of its time', async () => {
      const { start, pass, calls, settled } = await setUp();
      const app = start([
        {
          ...hourly,
          owner: 'ann',
          context: { plan: 'pro' },
          input: (due) => `Report for ${due.toISOString()}`,
        },
      ]);
      await app.armed();
      await pass(hour);
      await settled();
      await eventually(() => calls.length === 1);
      expect(await app.sessions()).toEqual([]);
      const { items } = await app.writer.listSessions({ owner: 'ann' });
      expect(items.map(({ sessionId }) => sessionId)).toEqual([expect.stringMatching(/^hourly@/)]);
      expect(calls[0]).toContain(`Report for ${items[0]?.sessionId.slice(7, -1)}.000Z`);
      const now = await app.app.runSchedule('hourly');
      expect(await now.wait()).toMatchObject({ finishReason: 'stop' });
      expect(calls).toHaveLength(2);
      await expect(app.app.runSchedule('daily')).rejects.toMatchObject({ status: 'NOT_FOUND' });
    });

    test('S890 a process that dies between the start of a run and the next time leads to no second run', async () => {
      const { start, pass, store, calls, settled } = await setUp();
      const { runs } = store;
      if (runs === undefined) return expect.fail('no runs');
      let deaths = 0;
      // The process ends before it can release the time.
      const release: typeof runs.release = (ref, ...rest) => {
        if (deaths > 0) return runs.release(ref, ...rest);
        deaths++;
        return new Promise(() => {});
      };
      const dying = start([hourly], { store: { ...store, runs: { ...runs, release } } });
      await dying.armed();
      await pass(hour);
      await eventually(() => deaths === 1, 'the death');
      await ended(store);
      dying.app.engine.stop();
      await pass(6_000);
      const next = start([{ ...hourly, input: 'Another text.' }]);
      await settled();
      await eventually(async () => (await next.app.listSchedules())[0]?.last !== undefined);
      expect(await next.sessions()).toHaveLength(1);
      expect(calls).toHaveLength(1);
      expect([...dying.errors, ...next.errors]).toEqual([]);
    });

    test('S890 a process that stalls while it starts a run leaves the rest to another one', async () => {
      const { start, pass, store, calls, settled } = await setUp();
      const { runs } = store;
      if (runs === undefined) return expect.fail('no runs');
      const stall = Promise.withResolvers<void>();
      let refusal: Promise<unknown> | undefined;
      const release: typeof runs.release = async (ref, ...rest) => {
        if (refusal !== undefined) return await runs.release(ref, ...rest);
        const late = stall.promise.then(() => runs.release(ref, ...rest));
        refusal = late.catch((error: unknown) => error);
        return await late;
      };
      const slow = start([hourly], { store: { ...store, runs: { ...runs, release } } });
      await slow.armed();
      await pass(hour);
      await eventually(() => refusal !== undefined, 'the stall');
      await ended(store);
      const next = start([hourly]);
      await pass(6_000);
      await eventually(
        async () => (await waiting(store))[0]?.worker === 'schedule',
        'the other one',
      );
      stall.resolve();
      expect(await refusal).toMatchObject({ status: 'ABORTED' });
      await settled();
      expect(await next.sessions()).toHaveLength(1);
      expect(calls).toHaveLength(1);
      expect([...slow.errors, ...next.errors]).toEqual([]);
    });

    test('S895 a run that cannot be started is reported, and the next time is not affected', async () => {
      const { start, pass, settled } = await setUp();
      let asked = 0;
      const app = start([
        {
          ...hourly,
          input: () => {
            if (++asked === 1) throw new Error('no source');
            return 'Write.';
          },
        },
      ]);
      await app.armed();
      await pass(hour);
      await eventually(() => app.errors.length === 1);
      expect(app.errors[0]?.message).toContain('no source');
      await eventually(async () => {
        const [info] = await app.app.listSchedules();
        expect(info?.last).toMatchObject({ error: expect.stringContaining('no source') });
      });
      await settled();
      await pass(hour);
      await eventually(async () => (await app.sessions()).length === 1);
    });

    test('S896 a clock that was wrong, or goes back, neither stops a schedule nor starts a run twice', async () => {
      const { start, pass, calls, settled, store } = await setUp();
      const fast = movableClock();
      fast.advance(40 * 24 * hour);
      const wrong = start([hourly], { clock: fast.clock });
      await wrong.armed();
      await wrong.close();
      const app = start([hourly]);
      const next = async () => Number((await waiting(store))[0]?.context?.due);
      await eventually(async () => (await next()) < fast.clock.now() - 39 * 24 * hour, 'the fix');
      await pass(hour);
      await eventually(async () => (await app.sessions()).length === 1);
      await settled();
      await pass(-hour);
      // The intervals of this clock wait until it has caught up.
      await eventually(async () => {
        await app.app.engine.recover();
        return (await next()) <= Date.now() + hour;
      }, 'the earlier time');
      await pass(hour);
      await settled();
      await pass(hour);
      await eventually(async () => (await app.sessions()).length === 2);
      await settled();
      expect(calls).toHaveLength(2);
    });

    test('S897 the runs of a schedule with a session continue it', async () => {
      const { start, pass, settled } = await setUp();
      const app = start([{ ...hourly, sessionId: 'diary' }]);
      await app.armed();
      for (let times = 1; times <= 2; times++) {
        await pass(hour);
        await eventually(async () => {
          const session = await app.writer.getSession('diary');
          return session?.state?.messages?.length === times * 2;
        });
        await settled();
      }
      expect(await app.sessions()).toEqual(['diary']);
    });
  });
}

const at = (time: number): string => new Date(time).toISOString().replace('.000Z', 'Z');

/** Resolves when no run of the agent is open: when its claim expired, another process would continue it. */
async function ended({ runs }: Store): Promise<void> {
  await eventually(
    async () => (await runs?.listRuns({ agent: 'writer' }))?.length === 0,
    'the end',
  );
}

/** The times that wait in a store. */
async function waiting({ runs }: Store): Promise<readonly RunRecord[]> {
  return (await runs?.listRuns({ agent: 'waymark.schedules/times' })) ?? [];
}
