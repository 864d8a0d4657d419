import { describe, expect, test } from 'vitest';
import {
  assertNever,
  isWaymarkError,
  originalOf,
  toErrorBody,
  toWaymarkError,
  WaymarkError,
} from './error.ts';

test('an error carries its status, details and cause, and prints under its name', () => {
  const cause = new Error('disk');
  const error = new WaymarkError('DATA_LOSS', 'The file is damaged.', {
    details: { line: 3 },
    cause,
  });
  expect(error).toBeInstanceOf(Error);
  expect(String(error)).toBe('WaymarkError: The file is damaged.');
  expect(error.cause).toBe(cause);
  expect(JSON.parse(JSON.stringify(error))).toEqual({
    status: 'DATA_LOSS',
    message: 'The file is damaged.',
    details: { line: 3 },
  });
  expect(Object.keys(new WaymarkError('ABORTED', 'x').toJSON())).toEqual(['status', 'message']);
});

test('an error of another copy of this package is known by its name', () => {
  class WaymarkErrorElsewhere extends Error {
    override name = 'WaymarkError';
    status = 'NOT_FOUND';
  }
  const foreign = new WaymarkErrorElsewhere('No such thing.');
  expect(isWaymarkError(foreign)).toBe(true);
  expect(toWaymarkError(foreign)).toBe(foreign);
  expect(toErrorBody(foreign)).toEqual({ status: 'NOT_FOUND', message: 'No such thing.' });
});

test.each([
  undefined,
  null,
  'WaymarkError',
  new Error('x'),
  Object.assign(new Error('x'), { name: 'WaymarkError', status: 'SOMETHING' }),
  { name: 'WaymarkError', status: 'INTERNAL' },
])('%o is not one', (value) => {
  expect(isWaymarkError(value)).toBe(false);
});

describe('what was thrown as data', () => {
  test.each([
    new Error('password: hunter2'),
    'password: hunter2',
    { message: 'password: hunter2' },
    null,
    undefined,
  ])('keeps the text of an unknown exception to itself', (thrown) => {
    const body = toErrorBody(thrown);
    expect(body).toEqual({ status: 'INTERNAL', message: 'An unexpected error occurred.' });
    const error = toWaymarkError(thrown);
    expect(error.status).toBe('INTERNAL');
    expect(error.cause).toBe(thrown);
    expect(JSON.parse(JSON.stringify(error))).toEqual(body);
    // In this process nothing is kept back.
    expect(originalOf(error)).toBe(thrown);
    if (thrown) expect(error.message).toBe('password: hunter2');
  });

  test('an abort is CANCELLED, a timeout DEADLINE_EXCEEDED', () => {
    expect(toErrorBody(AbortSignal.abort().reason).status).toBe('CANCELLED');
    expect(toErrorBody(Object.assign(new Error('x'), { name: 'AbortError' })).status).toBe(
      'CANCELLED',
    );
    expect(toErrorBody(new DOMException('x', 'TimeoutError')).status).toBe('DEADLINE_EXCEEDED');
  });

  test('holds neither stack nor cause', () => {
    const error = new WaymarkError('INTERNAL', 'x', { cause: new Error('secret') });
    expect(Object.keys(toErrorBody(error))).toEqual(['status', 'message']);
  });
});

test('assertNever says what it met', () => {
  expect(() => assertNever({ kind: 'new' } as never)).toThrow('{"kind":"new"}');
  expect(() => assertNever(1n as never)).toThrow('bigint');
});
