import { expect, test } from 'vitest';
import { collectWrite, concludeWrite } from './collected-write.ts';
import { first, one, type Plan, run, statement } from './query.ts';

const insert = statement<{ readonly row_id: number }>('insert', 'INSERT');
const refer = statement('refer', 'UPDATE');
const look = statement<{ readonly found: number }>('look', 'SELECT');

function* write(): Plan<readonly number[]> {
  const a = yield* one(insert, 'a');
  const b = yield* one(insert, a.row_id);
  yield* run(refer, b.row_id, -1, null, a.row_id);
  return [a.row_id, b.row_id];
}

test('a parameter that an earlier query gives refers to that query', () => {
  const queries = collectWrite(write(), () => true);
  expect(queries?.map(({ statement: { name }, values }) => [name, ...values])).toEqual([
    ['insert', 'a'],
    ['insert', { rowOf: 0 }],
    ['refer', { rowOf: 1 }, -1, null, { rowOf: 0 }],
  ]);
  const rows = [[{ row_id: 7 }], [{ row_id: 9 }], []];
  expect(concludeWrite(write(), queries ?? [], (place) => rows[place] ?? [])).toEqual([7, 9]);
});

test('a plan with a query that the driver does not accept is not collected', () => {
  expect(collectWrite(write(), ({ name }) => name !== 'refer')).toBeUndefined();
});

test('a plan whose queries depend on an answer is an error', () => {
  function* asks(): Plan<void> {
    const row = yield* first(look);
    if (row !== undefined) yield* run(refer, 1);
    else yield* run(insert, 1);
  }
  const queries = collectWrite(asks(), () => true) ?? [];
  expect(() => concludeWrite(asks(), queries, () => [])).toThrow('must not depend on answers');
});
