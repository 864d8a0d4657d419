import { describe, expect, test } from 'vitest';
import { fakeClock } from '../../testing/fake-clock.ts';
import { abortError } from '../async/signal.ts';
import { WaymarkError } from '../error.ts';
import { type Clock, systemClock } from './clock.ts';
import { after, timeoutSignal, waitAtMost, withTimeout } from './timers.ts';

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
