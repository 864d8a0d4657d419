import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { letOthersRun } from '../platform.ts';
import { gather } from './groups.ts';

let now = 0;
let called: number[] = [];
beforeEach(() => {
  called = [];
  vi.spyOn(performance, 'now').mockImplementation(() => now);
});
afterEach(() => {
  vi.restoreAllMocks();
});

const gathered = (id: number): void => gather(() => called.push(id));

test('calls of one turn of the event loop are made together after it', async () => {
  gathered(1);
  gathered(2);
  await Promise.resolve();
  expect(called).toEqual([]);
  await letOthersRun();
  expect(called).toEqual([1, 2]);
});

test('in a long turn all are made when a call comes more than a quarter of a millisecond after the first', async () => {
  gathered(1);
  now += 0.2;
  gathered(2);
  expect(called).toEqual([]);
  now += 0.1;
  gathered(3);
  expect(called).toEqual([1, 2, 3]);
  gathered(4);
  expect(called).toEqual([1, 2, 3]);
  await letOthersRun();
  expect(called).toEqual([1, 2, 3, 4]);
});
