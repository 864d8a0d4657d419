import { expect, test } from 'vitest';
import { uuidBytes, uuidText } from './bytes.ts';

const id = '0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b';

test('an id has sixteen bytes, which give the id again', () => {
  expect(uuidText(uuidBytes(id))).toBe(id);
  expect(uuidText(uuidBytes(id.toUpperCase()))).toBe(id);
});

test.each(['', 'x', `x${id}`, `${id}z`, `é${id}`, id.slice(1), `${id}0`])(
  'other text has none: %s',
  (text) => {
    expect(uuidBytes(text)).toHaveLength(0);
  },
);
