/**
 * Puts code, option tables, the command reference and the list of decisions into the pages they belong to, writes llms.txt, and
 * puts the address of the repository where it belongs.
 * `node scripts/docs.ts` says which pages are out of date and exits with 1; `--write` brings them up to date.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { withAddress } from './docs/address.ts';
import { llmsText } from './docs/llms.ts';
import { pages } from './docs/pages.ts';
import { renderPage } from './docs/render.ts';

const root = resolve(import.meta.dirname, '..');
const isWriting = process.argv.includes('--write');
let outdated = 0;
const files = [
  ...pages(root).map((page) => ({ page, render: (text: string) => renderPage(text, root) })),
  { page: 'package.json', render: withAddress },
  { page: 'llms.txt', render: () => llmsText(root, 'docs/') },
];
for (const { page, render } of files) {
  const path = join(root, page);
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  const rendered = render(text);
  if (rendered === text) continue;
  outdated++;
  if (isWriting) writeFileSync(path, rendered);
  console.log(isWriting ? `${page} is up to date again.` : `${page} is out of date: npm run docs`);
}
if (outdated > 0 && !isWriting) process.exitCode = 1;
