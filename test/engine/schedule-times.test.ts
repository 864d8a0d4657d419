import { expect, test } from 'vitest';
import { waymark } from '../../src/app.ts';
import { nextTime, type Schedule } from '../../src/engine/schedule.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';

const times = async (cron: string, timeZone: string, from: string, count: number) => {
  const found: string[] = [];
  for (let at = Date.parse(from); found.length < count; ) {
    at = (await nextTime({ key: 'k', cron, timeZone, agent: 'a', input: 'x' }, at)) ?? Number.NaN;
    found.push(new Date(at).toISOString().slice(5, 16));
  }
  return found;
};

test('S898 cron times follow the time zone: a time that a change of the clocks skips comes after it, one that comes twice starts one run', async () => {
  const from = (date: string) => times('30 2 * * *', 'Europe/Berlin', date, 3);
  expect(await from('2026-03-28T00:00:00Z')).toEqual(['03-28T01:30', '03-29T01:00', '03-30T00:30']);
  expect(await from('2026-10-24T00:00:00Z')).toEqual(['10-24T00:30', '10-25T00:30', '10-26T01:30']);
  const hourly = await times('0 * * * *', 'Europe/Berlin', '2026-10-24T23:30:00Z', 3);
  expect(hourly).toEqual(['10-25T00:00', '10-25T01:00', '10-25T02:00']);
  const weekdays = await times('0 7 * * 1-5', 'America/New_York', '2026-11-20T13:00:00Z', 2);
  expect(weekdays).toEqual(['11-23T12:00', '11-24T12:00']);
  const leap = await times('0 0 29 2 *', 'UTC', '2026-11-20T13:00:00Z', 1);
  expect(leap).toEqual(['02-29T00:00']);
  expect(await nextTime({ key: 'k', cron: '0 0 31 2 *', agent: 'a', input: 'x' }, 0)).toBe(
    undefined,
  );
});

test('`every` has the same times in every process', async () => {
  const every = { key: 'k', every: 900_000, agent: 'a', input: 'x' };
  const at = Date.parse('2026-11-20T13:07:00Z');
  expect(await nextTime(every, at)).toBe(Date.parse('2026-11-20T13:15:00Z'));
  expect(await nextTime(every, Date.parse('2026-11-20T13:15:00Z'))).toBe(
    Date.parse('2026-11-20T13:30:00Z'),
  );
});

test('a schedule that cannot be right is refused', async () => {
  const app = waymark({ store: memoryStore(), work: false });
  app.defineCustomAgent({ name: 'a' }, async () => {});
  const good = { key: 'k', every: 60_000, agent: 'a', input: 'x' };
  const bad: [object, RegExp][] = [
    [{ ...good, key: 'a b' }, /`key` of a schedule/],
    [{ ...good, every: 10 }, /at least 1000/],
    [{ ...good, cron: '* * * * *' }, /either `cron` or `every`/],
    [{ ...good, timeZone: 'UTC' }, /only `cron` uses/],
    [{ ...good, agent: undefined }, /needs the `agent`/],
    [{ ...good, input: undefined }, /needs the `input`/],
    [{ ...good, concurrency: 0 }, /`concurrency`/],
    [{ ...good, sessionId: 's', concurrency: 2 }, /one turn at a time/],
    [{ ...good, timezone: 'UTC' }, /timeZone/],
  ];
  for (const [schedule, message] of bad) {
    expect(() => app.schedule(schedule as Schedule)).toThrow(message);
  }
  app.schedule(good);
  expect(() => app.schedule(good)).toThrow('already a schedule "k"');
  await app.ready();
  app.schedule({ key: 'never', cron: '61 * * * *', agent: 'a', input: 'x' });
  await expect(app.ready()).rejects.toThrow(/schedule "never" are not valid.*minute/);
  const without = waymark();
  without.defineCustomAgent({ name: 'a' }, async () => {});
  without.schedule(good);
  await expect(without.ready()).rejects.toThrow(/needs a store/);
  const unknown = waymark({ store: memoryStore(), work: false });
  unknown.schedule({ ...good, agent: 'b' });
  await expect(unknown.ready()).rejects.toThrow(/agent "b".*does not define/);
});
