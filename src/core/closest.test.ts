import { expect, test } from 'vitest';
import { closest, likely } from './closest.ts';

test('of names that are equally near, the one that begins more like the wanted one comes first', () => {
  expect(likely('inptu', ['init', 'input', 'output'])).toBe('input');
  expect(closest('inptu', ['output', 'init', 'input'])).toEqual(['input', 'init', 'output']);
});

test('other names that are equally near are sorted by name', () => {
  expect(closest('cat', ['hat', 'bat'])).toEqual(['bat', 'hat']);
  expect(likely('weather', ['mail', 'calendar'])).toBeUndefined();
});
