/** Every cell of the comparison with other libraries has a source, and the pages show what the data says. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import {
  comparisonSources,
  comparisonSummary,
  comparisonTable,
  parseComparison,
  readComparison,
} from '../../scripts/docs/comparison.ts';

const root = resolve(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const comparison = readComparison(root);
const cells = comparison.rows.flatMap((row) => Object.values(row.cells));

test('every cell has a source with a page and a version', () => {
  expect(cells).toHaveLength(comparison.rows.length * Object.keys(comparison.systems).length);
  for (const { sources } of cells) {
    for (const { page, version } of sources) {
      expect(page).toMatch(/^(https:\/\/\S+|npm:\S+|[\w/.-]+)$/);
      expect(version).toMatch(/\d|page/);
    }
  }
});

test('a reader can take the table in: at most 12 rows', () => {
  expect(comparison.rows.length).toBeLessThanOrEqual(12);
});

test('the README, the page and the list of sources have what the data says', () => {
  // Out of date? npm run docs
  expect(read('README.md')).toContain(comparisonSummary(comparison));
  for (const group of Object.keys(comparison.groups)) {
    expect(read('docs/compared.md')).toContain(comparisonTable(comparison, group));
  }
  expect(read('bench/COMPARISON.md')).toContain(comparisonSources(comparison));
});

test('every system is in a table of the page', () => {
  const shown = new Set(Object.values(comparison.groups).flat());
  expect([...shown].sort()).toEqual(Object.keys(comparison.systems).sort());
});

test('a cell without a source, a missing cell and a page that does not exist are refused', () => {
  const source = { page: 'docs/stores.md', version: '0.1.0', note: 'Retention.' };
  const data = (inner: unknown) => ({
    asOf: 'today',
    systems: { ours: 'Ours' },
    groups: { all: ['ours'] },
    rows: [{ name: 'retention', cells: inner }],
  });
  const parse = (inner: unknown) => parseComparison(data(inner), (path) => path === source.page);
  expect(parse({ ours: { text: 'yes', sources: [source] } }).rows).toHaveLength(1);
  expect(() => parse({ ours: { text: 'yes', sources: [] } })).toThrow('length');
  expect(() => parse({})).toThrow('The row "retention" of the comparison has no "ours".');
  expect(() =>
    parse({ ours: { text: 'yes', sources: [{ ...source, page: 'docs/none.md' }] } }),
  ).toThrow('"docs/none.md", which does not exist');
});

test('the page says of every library when to choose it', () => {
  const page = read('docs/compared.md');
  for (const name of Object.values(comparison.systems)) expect(page).toContain(`- **${name}**`);
});
