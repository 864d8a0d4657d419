import { expect, test } from 'vitest';
import { progressBar } from './format.ts';

test('shows a share of the total, and a number where there is none', () => {
  expect(progressBar('Checking', 0, 10)).toBe('Checking … [--------------------] 0 %');
  expect(progressBar('Checking', 5, 10)).toBe('Checking … [##########----------] 50 %');
  expect(progressBar('Checking', 12, 10)).toBe('Checking … [####################] 100 %');
  expect(progressBar('Checking', 0, 0)).toBe('Checking … [####################] 100 %');
  expect(progressBar('Checking', 7, undefined)).toBe('Checking … 7');
});
