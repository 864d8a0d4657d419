import { describe, expect, test, vi } from 'vitest';
import { WaymarkError } from '../error.ts';
import {
  abortError,
  lifelongController,
  linkSignals,
  raceSignal,
  throwIfAborted,
} from './signal.ts';

/** Counts the abort listeners that stay on a signal. */
function watched(): { controller: AbortController; listeners: () => number } {
  const controller = new AbortController();
  let count = 0;
  const { signal } = controller;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  vi.spyOn(signal, 'addEventListener').mockImplementation(
    (
      type: string,
      listener: EventListenerOrEventListenerObject,
      options?: AddEventListenerOptions | boolean,
    ) => {
      count++;
      add(type, listener, options);
    },
  );
  vi.spyOn(signal, 'removeEventListener').mockImplementation(
    (type: string, listener: EventListenerOrEventListenerObject) => {
      count--;
      remove(type, listener);
    },
  );
  return { controller, listeners: () => count };
}

describe('abortError', () => {
  test('is the reason if that is ours', () => {
    const reason = new WaymarkError('ABORTED', 'Another worker has the run.');
    expect(abortError(AbortSignal.abort(reason))).toBe(reason);
  });

  test.each([undefined, 'left the page', new Error('x'), { a: 1 }])(
    'is CANCELLED for a reason like %o',
    (reason) => {
      const signal = AbortSignal.abort(reason);
      expect(abortError(signal)).toMatchObject({ status: 'CANCELLED', cause: signal.reason });
    },
  );

  test('is DEADLINE_EXCEEDED for a timeout', async () => {
    const signal = AbortSignal.timeout(1);
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    expect(abortError(signal).status).toBe('DEADLINE_EXCEEDED');
    expect(() => throwIfAborted(signal)).toThrow(WaymarkError);
    throwIfAborted(undefined);
  });
});

describe('raceSignal', () => {
  test('gives the value, or throws what the promise threw, and leaves no listener', async () => {
    const { controller, listeners } = watched();
    expect(await raceSignal(Promise.resolve(1), controller.signal)).toBe(1);
    await expect(raceSignal(Promise.reject(new Error('x')), controller.signal)).rejects.toThrow(
      'x',
    );
    expect(await raceSignal(Promise.resolve(1))).toBe(1);
    expect(listeners()).toBe(0);
  });

  test('rejects at once when the signal aborts, and the loser is never unhandled', async () => {
    const { controller, listeners } = watched();
    const slow = Promise.withResolvers<void>();
    const race = raceSignal(slow.promise, controller.signal);
    controller.abort();
    await expect(race).rejects.toMatchObject({ status: 'CANCELLED' });
    slow.reject(new Error('late'));
    await expect(
      raceSignal(Promise.reject(new Error('late')), controller.signal),
    ).rejects.toMatchObject({
      status: 'CANCELLED',
    });
    expect(listeners()).toBeLessThanOrEqual(0);
  });
});

describe('linkSignals', () => {
  test('aborts with the first of its signals and the same reason', () => {
    const [a, b] = [new AbortController(), new AbortController()];
    const linked = linkSignals(a.signal, undefined, b.signal);
    b.abort('why');
    a.abort('late');
    expect(linked.signal.reason).toBe('why');
    expect(linkSignals(new AbortController().signal, b.signal).signal.reason).toBe('why');
  });

  test('can be aborted alone, and unsubscribes from its signals when released', () => {
    const { controller, listeners } = watched();
    const first = linkSignals(controller.signal);
    first.abort('mine');
    expect(controller.signal.aborted).toBe(false);
    expect(listeners()).toBe(0);
    const second = linkSignals(controller.signal, controller.signal);
    second.release();
    expect(listeners()).toBe(0);
    controller.abort();
    expect(second.signal.aborted).toBe(false);
  });
});

test('a lifelong signal has any number of listeners without a warning, and calls each once', async () => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning);
  process.on('warning', onWarning);
  const controller = lifelongController();
  let called = 0;
  const gone = (): void => expect.unreachable();
  controller.signal.addEventListener('abort', gone);
  for (let at = 0; at < 100; at++) controller.signal.addEventListener('abort', () => called++);
  controller.signal.removeEventListener('abort', gone);
  controller.abort('the end');
  controller.abort('again');
  // Node warns in the next turn of the event loop.
  await new Promise((resolve) => setImmediate(resolve));
  process.off('warning', onWarning);
  expect(called).toBe(100);
  expect(controller.signal).toMatchObject({ aborted: true, reason: 'the end' });
  expect(warnings).toEqual([]);
});
