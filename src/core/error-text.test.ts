import { expect, test } from 'vitest';
import { errorText, rootOf, toWaymarkError, WaymarkError } from './error.ts';

const at = /\n {4}at .*error-text\.test\.ts/;

test('an error is its type, its message and its stack', () => {
  const text = errorText(new TypeError('my bug'));
  expect(text).toMatch(/^TypeError: my bug\n {4}at /);
  expect(text).toMatch(at);
});

test('what only gave an error a status is not seen', () => {
  const thrown = new TypeError('my bug');
  expect(errorText(toWaymarkError(thrown))).toBe(errorText(thrown));
  expect(errorText(toWaymarkError('just text'))).toBe('just text');
});

test('an error that says where another one happened is one line above it', () => {
  const cause = new TypeError('my bug');
  const [first, second] = errorText(
    new WaymarkError('UNAVAILABLE', 'Model "m" failed: my bug', { cause }),
  ).split('\n');
  expect(first).toBe('WaymarkError UNAVAILABLE: Model "m" failed: my bug');
  expect(second).toBe('Caused by: TypeError: my bug');
  expect(
    errorText(new WaymarkError('UNAVAILABLE', 'Model "m" failed: gone', { cause: 'gone' })),
  ).toMatch(/^WaymarkError UNAVAILABLE: Model "m" failed: gone\n {4}at /);
});

test('a chain of causes is followed, a cycle ends', () => {
  const inner = new Error('inner');
  const text = errorText(new Error('outer', { cause: inner }));
  expect(text).toMatch(/^Error: outer\n[\s\S]*\nCaused by: Error: inner\n/);
  inner.cause = inner;
  expect(errorText(inner).match(/Caused by/g)).toHaveLength(8);
  const several = new AggregateError([new Error('one'), new Error('two')], 'all');
  expect(errorText(several)).toMatch(
    /AggregateError: all[\s\S]*by: Error: one[\s\S]*by: Error: two/,
  );
});

test('the message of an error that was changed is the one that is shown', () => {
  const error = new Error('before');
  error.message = 'after';
  expect(errorText(error)).toMatch(/^Error: after\n {4}at /);
  expect(errorText(Object.assign(new Error('x'), { stack: undefined }))).toBe('Error: x');
});

test('the root is what was thrown first', () => {
  const thrown = new TypeError('my bug');
  const named = new WaymarkError('INTERNAL', 'The store failed.', { cause: thrown });
  expect(rootOf(new WaymarkError('INTERNAL', 'Saving failed.', { cause: named }))).toBe(thrown);
  expect(rootOf(toWaymarkError(thrown))).toBe(thrown);
  expect(rootOf('text')).toBe('text');
});
