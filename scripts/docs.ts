/**
 * Puts code, option tables, the command reference and the list of decisions into the pages they belong to.
 * `node scripts/docs.ts` says which pages are out of date and exits with 1; `--write` brings them up to date.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pages } from './docs/pages.ts';
import { renderPage } from './docs/render.ts';

const root = resolve(import.meta.dirname, '..');
const isWriting = process.argv.includes('--write');
let outdated = 0;
for (const page of pages(root)) {
  const path = join(root, page);
  const text = readFileSync(path, 'utf8');
  const rendered = renderPage(text, root);
  if (rendered === text) continue;
  outdated++;
  if (isWriting) writeFileSync(path, rendered);
  console.log(isWriting ? `${page} is up to date again.` : `${page} is out of date: npm run docs`);
}
if (outdated > 0 && !isWriting) process.exitCode = 1;
