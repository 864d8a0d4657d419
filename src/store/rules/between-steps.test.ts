import { describe, expect, test } from 'vitest';
import { letOthersRun } from '../../core/platform.ts';
import { beginOfMarking as begin, fullCollection as full, Marking } from './between-steps.ts';

const minor = 1;

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
