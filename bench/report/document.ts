import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { repository } from '../lib/setup.ts';
import { type Table, toMarkdown } from './table.ts';

const documents = ['bench/RESULTS.md', 'docs/performance.md', 'README.md'];

/** Puts the tables where the documents name them: between `<!-- table: name -->` and `<!-- end -->`. */
export function writeTables(tables: readonly Table[]): void {
  for (const path of documents.map((name) => join(repository, name))) {
    if (!existsSync(path)) continue;
    const text = readFileSync(path, 'utf8');
    writeFileSync(path, tables.reduce(placeTable, text));
  }
}

function placeTable(text: string, table: Table): string {
  const place = new RegExp(`(<!-- table: ${table.name} -->\n)[^]*?(<!-- end -->)`, 'g');
  return text.replace(place, (_, start, end) => `${start}\n${toMarkdown(table)}\n\n${end}`);
}
