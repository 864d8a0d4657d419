import { afterEach, expect, test, vi } from 'vitest';
import { systemClock } from './clock.ts';

afterEach(() => {
  vi.useRealTimers();
});

test('sleeps for about as long as it is told to', async () => {
  const before = systemClock.now();
  await systemClock.sleep(20);
  expect(systemClock.now() - before).toBeGreaterThanOrEqual(18);
});

test('a sleep ends at once with its signal', async () => {
  const abort = new AbortController();
  const sleep = systemClock.sleep(60_000, abort.signal);
  abort.abort();
  await expect(sleep).rejects.toMatchObject({ status: 'CANCELLED' });
  await expect(systemClock.sleep(60_000, abort.signal)).rejects.toMatchObject({
    status: 'CANCELLED',
  });
});

test('sleeps longer than a timer can', async () => {
  vi.useFakeTimers();
  const month = 40 * 24 * 3600 * 1000;
  let awake = false;
  const sleep = systemClock.sleep(month).then(() => {
    awake = true;
  });
  await vi.advanceTimersByTimeAsync(month - 1);
  expect(awake).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  await sleep;
});

test('every calls again and again until it is stopped', () => {
  vi.useFakeTimers();
  let calls = 0;
  const stop = systemClock.every(10, () => {
    calls++;
  });
  vi.advanceTimersByTime(35);
  stop();
  vi.advanceTimersByTime(100);
  expect(calls).toBe(3);
});

test('every does not keep a process alive, a sleep does', () => {
  const { spawnSync } = process.getBuiltinModule('node:child_process');
  const clock = JSON.stringify(new URL('./clock.ts', import.meta.url).href);
  const script = `const { systemClock } = await import(${clock}); systemClock.every(1000, () => {});
    systemClock.sleep(50).then(() => console.log('slept'));`;
  const run = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    timeout: 20_000,
  });
  expect(run.stdout).toBe('slept\n');
  expect(run.status).toBe(0);
});
