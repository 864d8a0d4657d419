import { PerformanceObserver } from 'node:perf_hooks';
import { describe, expect, test } from 'vitest';
import { letOthersRun } from '../../core/platform.ts';
import { kindOf, Marking } from './between-steps.ts';

const [minor, full, begin] = [1, 4, 8];

async function isOver(waiting: Promise<void> | undefined): Promise<boolean> {
  const soon = async (): Promise<false> => {
    for (let times = 0; times < 3; times++) await letOthersRun();
    return false;
  };
  return Promise.race([Promise.resolve(waiting).then(() => true), soon()]);
}

describe('a pause between two steps', () => {
  test('lasts from the beginning of marking to the full collection', async () => {
    const marking = new Marking({ longest: 60_000 });
    expect(marking.over()).toBeUndefined();
    marking.saw(minor);
    expect(marking.over()).toBeUndefined();
    marking.saw(begin);
    const waiting = marking.over();
    expect(await isOver(waiting)).toBe(false);
    marking.saw(minor);
    marking.saw(begin);
    expect(await isOver(waiting)).toBe(false);
    marking.saw(full);
    expect(await isOver(waiting)).toBe(true);
    expect(marking.over()).toBeUndefined();
  });

  test('ends after some time when no collection is reported', async () => {
    const marking = new Marking({ longest: 20 });
    marking.saw(begin);
    await marking.over();
    expect(marking.over()).toBeUndefined();
    marking.saw(begin);
    expect(marking.over()).toBeDefined();
    marking.saw(full);
    expect(marking.over()).toBeUndefined();
  });
});

// What it depends on: Node tells of the beginning of a marking in time, and then of the collection.
test('Node reports when marking begins, before the full collection at its end', async () => {
  const kinds: (number | undefined)[] = [];
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) kinds.push(kindOf(entry));
  });
  observer.observe({ entryTypes: ['gc'] });
  const fullAfterBegin = (): number => kinds.indexOf(full, kinds.indexOf(begin));
  const isThere = (): boolean => kinds.includes(begin) && fullAfterBegin() >= 0;
  const kept: object[] = [];
  for (let rounds = 0; !isThere() && rounds < 20_000; rounds++) {
    for (let n = 0; n < 200; n++) kept.push({ n, text: `${n} ${rounds}` });
    if (kept.length > 1_000_000) kept.length = 0;
    await letOthersRun();
  }
  observer.disconnect();
  expect(kinds).toContain(begin);
  expect(fullAfterBegin()).toBeGreaterThan(0);
});
