import { expect, test, vi } from 'vitest';
import { type Clock, systemClock } from '../../core/time.ts';
import {
  FramePump,
  type FrameStreamEnd,
  type FrameStreamOptions,
  frameStream,
} from './frame-stream.ts';

const base: FrameStreamOptions<string> = {
  clock: systemClock,
  encode: (text) => text,
  keepAlive: '!',
  keepAliveMs: 10_000,
  stallMs: 10_000,
};

test('everything arrives, in order, in few pieces', async () => {
  const ends: FrameStreamEnd[] = [];
  async function* numbers(): AsyncGenerator<readonly string[]> {
    for (let at = 0; at < 10_000; at++) yield [`${at}\n`];
  }
  const body = bodyOf(numbers(), { ...base, onEnd: (how) => ends.push(how) });
  const pieces = await readAll(body);
  expect(pieces.join('')).toBe(Array.from({ length: 10_000 }, (_, at) => `${at}\n`).join(''));
  expect(pieces.length).toBeLessThan(100);
  expect(ends).toEqual(['complete']);
});

test('a frame after a pause does not wait for company', async () => {
  const isRead = Promise.withResolvers<void>();
  async function* slowly(): AsyncGenerator<readonly string[]> {
    yield ['a'];
    await isRead.promise;
    yield ['b'];
  }
  const reader = bodyOf(slowly(), base).getReader();
  expect(textOf((await reader.read()).value)).toBe('a');
  isRead.resolve();
  expect(textOf((await reader.read()).value)).toBe('b');
  expect((await reader.read()).done).toBe(true);
});

test('of one large batch no more is encoded than the reader takes', async () => {
  const encode = vi.fn((text: string) => text);
  async function* oneBatch(): AsyncGenerator<readonly string[]> {
    yield Array.from({ length: 1000 }, () => 'x'.repeat(10_000));
  }
  const reader = bodyOf(oneBatch(), { ...base, encode }).getReader();
  await vi.waitFor(() => expect(encode).toHaveBeenCalled());
  await new Promise((resolve) => setImmediate(resolve));
  expect(encode.mock.calls.length).toBeLessThan(30);
  let length = 0;
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    length += piece.value.length;
  }
  expect(length).toBe(10_000_000);
});

test('a reader that does not read holds a bounded buffer, and is dropped', async () => {
  const clock = manualClock();
  const ends: FrameStreamEnd[] = [];
  let made = 0;
  async function* endless(): AsyncGenerator<readonly string[]> {
    for (;;) {
      made++;
      yield ['x'.repeat(1024)];
    }
  }
  const cut = vi.fn();
  bodyOf(endless(), { ...base, clock, cut, onEnd: (how) => ends.push(how) });
  await systemClock.sleep(20);
  const before = made;
  expect(before * 1024).toBeLessThan(200_000);
  // A clock that jumps, or a process that stood still, is not the reader's fault.
  clock.jump(3_600_000);
  clock.jump(-7_200_000);
  expect(cut).not.toHaveBeenCalled();
  clock.advance(7_500);
  expect(cut).not.toHaveBeenCalled();
  clock.advance(2_500);
  expect(cut).toHaveBeenCalledOnce();
  expect(ends).toEqual(['stalled']);
  await systemClock.sleep(20);
  expect(made).toBe(before);
});

test('silence is filled with signs of life', async () => {
  const clock = manualClock();
  const end = Promise.withResolvers<void>();
  async function* silent(): AsyncGenerator<readonly string[]> {
    await end.promise;
    yield ['done'];
  }
  const reader = bodyOf(silent(), { ...base, clock, keepAliveMs: 100 }).getReader();
  const first = reader.read();
  clock.advance(100);
  expect(textOf((await first).value)).toBe('!');
  const second = reader.read();
  end.resolve();
  expect(textOf((await second).value)).toBe('done');
});

test('a reader that leaves ends the source', async () => {
  let ended = false;
  async function* source(): AsyncGenerator<readonly string[]> {
    try {
      for (;;) {
        yield ['x'];
        await systemClock.sleep(1);
      }
    } finally {
      ended = true;
    }
  }
  const ends: FrameStreamEnd[] = [];
  const reader = bodyOf(source(), { ...base, onEnd: (how) => ends.push(how) }).getReader();
  await reader.read();
  await reader.cancel();
  await vi.waitFor(() => expect(ended).toBe(true));
  expect(ends).toEqual(['disconnected']);
});

async function readAll(body: ReadableStream<Uint8Array>): Promise<string[]> {
  const pieces: string[] = [];
  for await (const piece of body) pieces.push(textOf(piece));
  return pieces;
}

function textOf(piece: Uint8Array | undefined): string {
  return new TextDecoder().decode(piece);
}

interface ManualClock extends Clock {
  /** Time goes by, and timers go off. */
  advance(ms: number): void;
  /** Time jumps, and what was due goes off once. */
  jump(ms: number): void;
}

function manualClock(): ManualClock {
  let time = 0;
  const timers = new Map<() => void, { readonly ms: number; due: number }>();
  return {
    now: () => time,
    sleep: () => Promise.resolve(),
    every(ms, fn) {
      timers.set(fn, { ms, due: ms });
      return () => timers.delete(fn);
    },
    advance(ms) {
      time += ms;
      for (const [fn, timer] of timers) {
        for (timer.due -= ms; timer.due <= 0; timer.due += timer.ms) fn();
      }
    },
    jump(ms) {
      time += ms;
      if (ms > 0) for (const fn of timers.keys()) fn();
    },
  };
}

function bodyOf<Event>(
  batches: AsyncIterable<readonly Event[]>,
  options: FrameStreamOptions<Event>,
): ReadableStream<Uint8Array> {
  return frameStream(new FramePump(batches, options), options);
}
