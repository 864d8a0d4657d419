import { expect, test } from 'vitest';
import { fakeClock } from '../../testing/fake-clock.ts';
import { after } from './after.ts';

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
