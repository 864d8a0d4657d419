import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { repository } from '../lib/setup.ts';
import { type Table, toMarkdown } from './table.ts';

const document = join(repository, 'docs/performance.md');

/** Puts the tables where the document names them: between `<!-- table: name -->` and `<!-- end -->`. */
export function writeTables(tables: readonly Table[]): void {
  if (!existsSync(document)) return;
  let text = readFileSync(document, 'utf8');
  for (const table of tables) {
    const place = new RegExp(`(<!-- table: ${table.name} -->\n)[^]*?(<!-- end -->)`, 'g');
    text = text.replace(place, (_, start, end) => `${start}\n${toMarkdown(table)}\n\n${end}`);
  }
  writeFileSync(document, text);
}
