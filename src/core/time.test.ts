import { afterEach, describe, expect, test, vi } from 'vitest';
import { fakeClock } from '../testing/fake-clock.ts';
import { abortError } from './async/signal.ts';
import { WaymarkError } from './error.ts';
import {
  after,
  backoff,
  type Clock,
  randomFraction,
  systemClock,
  timeoutSignal,
  waitAtMost,
  withTimeout,
} from './time.ts';

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
  const clock = JSON.stringify(new URL('./time.ts', import.meta.url).href);
  const script = `const { systemClock } = await import(${clock}); systemClock.every(1000, () => {});
    systemClock.sleep(50).then(() => console.log('slept'));`;
  const run = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    timeout: 20_000,
  });
  expect(run.stdout).toBe('slept\n');
  expect(run.status).toBe(0);
});

test.each([false, true])(
  'calls once, unless it is cancelled (keepAlive: %s)',
  async (keepAlive) => {
    const clock = fakeClock();
    let calls = 0;
    after(clock, 10, () => calls++, { keepAlive });
    const cancel = after(clock, 10, () => calls++, { keepAlive });
    cancel();
    await clock.advance(9);
    expect(calls).toBe(0);
    await clock.advance(50);
    expect(calls).toBe(1);
    expect(clock.waiting).toBe(0);
  },
);

describe('timeoutSignal', () => {
  test('aborts with DEADLINE_EXCEEDED when the time is up', async () => {
    const limit = timeoutSignal(systemClock, 5);
    await new Promise((resolve) => limit.signal.addEventListener('abort', resolve));
    expect(abortError(limit.signal)).toMatchObject({
      status: 'DEADLINE_EXCEEDED',
      message: 'Not done within 5 ms.',
    });
  });

  test('ends its timer when it is released, aborted, or the given signal aborts', () => {
    const waiting: AbortSignal[] = [];
    const clock: Clock = {
      ...systemClock,
      sleep: (_, signal) => {
        if (signal) waiting.push(signal);
        return new Promise(() => {});
      },
    };
    const parent = new AbortController();
    const [released, aborted, followed] = [
      timeoutSignal(clock, 5),
      timeoutSignal(clock, 5),
      timeoutSignal(clock, 5, parent.signal),
    ];
    released.release();
    aborted.abort('x');
    parent.abort('y');
    expect(waiting.map((signal) => signal.aborted)).toEqual([true, true, true]);
    expect([released, aborted, followed].map(({ signal }) => signal.reason)).toEqual([
      undefined,
      'x',
      'y',
    ]);
    expect(timeoutSignal(clock, 5, parent.signal).signal.aborted).toBe(true);
    expect(waiting).toHaveLength(3);
  });
});

describe('withTimeout', () => {
  const error = (): Error => new WaymarkError('DEADLINE_EXCEEDED', 'Too slow.');

  test('gives the value or the rejection that comes in time, and leaves no timer', async () => {
    const clock = fakeClock();
    expect(await withTimeout(Promise.resolve(1), { clock, ms: 5, error })).toBe(1);
    const failed = withTimeout(Promise.reject(new Error('no')), { clock, ms: 5, error });
    await expect(failed).rejects.toThrow('no');
    expect(clock.waiting).toBe(0);
  });

  test('rejects when the time is up', async () => {
    const clock = fakeClock();
    const late = withTimeout(new Promise(() => {}), { clock, ms: 5, error });
    const refused = expect(late).rejects.toThrow('Too slow.');
    await clock.advance(5);
    await refused;
    expect(clock.waiting).toBe(0);
  });
});

describe('waitAtMost', () => {
  test('waits for the promise, or until the time is up', async () => {
    const clock = fakeClock();
    await waitAtMost(clock, 5, Promise.resolve());
    const waited = waitAtMost(clock, 5, new Promise(() => {}));
    expect(clock.waiting).toBe(1);
    await clock.advance(5);
    await waited;
    expect(clock.waiting).toBe(0);
  });
});

test('doubles with each attempt up to the limit', () => {
  const delays = [1, 2, 3, 4, 60].map((attempt) => backoff(attempt, { baseMs: 100, maxMs: 500 }));
  expect(delays).toEqual([100, 200, 400, 500, 500]);
});

test('jitter takes away up to half', () => {
  const options = { baseMs: 100, maxMs: 1000 };
  expect(backoff(1, { ...options, jitter: () => 0 })).toBe(50);
  expect(backoff(1, { ...options, jitter: () => 1 })).toBe(100);
  for (let n = 0; n < 100; n++) {
    const delay = backoff(2, { ...options, jitter: randomFraction });
    expect(delay).toBeGreaterThanOrEqual(100);
    expect(delay).toBeLessThanOrEqual(200);
  }
});
