import { expect, test } from 'vitest';
import { privateField } from './private-field.ts';

test('a private field is on the object, and only its own functions find it', () => {
  const first = privateField<object, string>();
  const second = privateField<object, number>();
  const owner = { name: 'owner' };
  expect(first.get(owner)).toBeUndefined();
  first.set(owner, 'one');
  expect(second.get(owner)).toBeUndefined();
  second.set(owner, 2);
  first.set(owner, 'three');
  expect([first.get(owner), second.get(owner)]).toEqual(['three', 2]);
  expect(Reflect.ownKeys(owner)).toEqual(['name']);
  expect(first.get({ ...owner })).toBeUndefined();
  expect(first.get({})).toBeUndefined();
});
