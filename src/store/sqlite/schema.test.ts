import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { addSumFunctions } from './row-sums.ts';
import { newSteps, steps } from './schema.ts';

function schemaAfter(texts: readonly string[]): unknown {
  const db = new DatabaseSync(':memory:');
  addSumFunctions(db);
  for (const text of texts) db.exec(text);
  const schema = db
    .prepare('SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name')
    .all();
  db.close();
  return schema;
}

test('a new database has the tables of one that was upgraded from the first format', () => {
  expect(newSteps).not.toEqual(steps);
  expect(schemaAfter(newSteps)).toEqual(schemaAfter(steps));
});
