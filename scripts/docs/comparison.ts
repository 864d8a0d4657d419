import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';

const text = v.pipe(v.string(), v.trim(), v.nonEmpty());

/** Where a cell comes from: an address, a file of a published package (`npm:name/path`) or a file of this repository. */
const source = v.strictObject({ page: text, version: text, note: text });
/** `short` is what the README shows of the rows that it has. */
const cell = v.strictObject({
  text,
  short: v.optional(text),
  sources: v.pipe(v.array(source), v.minLength(1)),
});
const comparison = v.strictObject({
  asOf: text,
  systems: v.record(v.string(), text),
  /** The systems of each table of the page. */
  groups: v.record(v.string(), v.array(text)),
  rows: v.array(v.strictObject({ name: text, cells: v.record(v.string(), cell) })),
});

export type Comparison = v.InferOutput<typeof comparison>;
type Row = Comparison['rows'][number];
type Source = v.InferOutput<typeof source>;

/** Reads docs/comparison.json. Throws when a cell is missing, has no source, or names a page of ours that does not exist. */
export function readComparison(root: string): Comparison {
  return parseComparison(
    JSON.parse(readFileSync(join(root, 'docs/comparison.json'), 'utf8')),
    (path) => existsSync(join(root, path)),
  );
}

export function parseComparison(data: unknown, hasFile: (path: string) => boolean): Comparison {
  const parsed = v.parse(comparison, data);
  for (const row of parsed.rows) {
    for (const id of Object.keys(parsed.systems)) {
      for (const { page } of cellOf(row, id).sources) {
        if (!isOutside(page) && !hasFile(page)) {
          throw new Error(`The comparison names "${page}", which does not exist.`);
        }
      }
    }
  }
  return parsed;
}

/** One table of the page, with a column for each system of the group. */
export function comparisonTable({ systems, groups, rows }: Comparison, group: string): string {
  const ids = groups[group];
  if (ids === undefined) throw new Error(`The comparison has no group "${group}".`);
  return toTable([
    ['', ...ids.map((id) => systems[id] ?? id)],
    ...rows.map((row) => [row.name, ...ids.map((id) => cellOf(row, id).text)]),
  ]);
}

/** The table of the README: a line for each system, with the rows that have short texts. */
export function comparisonSummary({ systems, rows }: Comparison): string {
  const shown = rows.filter(({ cells }) => Object.values(cells).every(({ short }) => short));
  return toTable([
    ['', ...shown.map(({ name }) => name)],
    ...Object.entries(systems).map(([id, name]) => [
      name,
      ...shown.map((row) => cellOf(row, id).short ?? '–'),
    ]),
  ]);
}

function toTable([head = [], ...body]: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...body].map((line) => `| ${line.join(' | ')} |`).join('\n');
}

/** The sources of every cell, one list per row. */
export function comparisonSources({ systems, rows }: Comparison): string {
  return rows
    .map((row) => {
      const lines = Object.entries(systems).map(([id, name]) => {
        const sources = cellOf(row, id).sources.map(sourceText);
        return `- **${name}**: ${sources.join(' ')}`;
      });
      return `### ${capitalized(row.name)}\n\n${lines.join('\n')}`;
    })
    .join('\n\n');
}

function sourceText({ page, version, note }: Source): string {
  if (page.startsWith('npm:')) return `\`${page.slice('npm:'.length)}\` (${version}). ${note}`;
  if (isOutside(page)) return `<${page}> (${version}). ${note}`;
  return `[${page}](../${page}) (${version}). ${note}`;
}

function cellOf({ name, cells }: Row, id: string): Row['cells'][string] {
  const found = cells[id];
  if (found === undefined) throw new Error(`The row "${name}" of the comparison has no "${id}".`);
  return found;
}

const isOutside = (page: string): boolean => /^(https:\/\/|npm:)/.test(page);

const capitalized = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1);
