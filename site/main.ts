/**
 * Builds the site into `dist/html`: pages, API reference, search, `llms.txt` and a Markdown copy of each page, with all links
 * checked. `node main.ts serve` also serves it on loopback.
 */
import { copyFileSync, cpSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build, serve } from 'vitepress';
import { llmsText } from '../scripts/docs/llms.ts';
import { brokenLinks } from './build/check-links.ts';
import { fullText } from './build/markdown.ts';
import { writePages } from './build/pages.ts';
import { writeReference } from './build/reference.ts';

const site = import.meta.dirname;
const root = resolve(site, '..');
const pages = join(site, 'dist/pages');
const html = join(site, 'dist/html');

rmSync(join(site, 'dist'), { recursive: true, force: true });
writePages({ root, out: pages });
await writeReference({ root, out: join(pages, 'api') });
await build(site);

for (const name of readdirSync(pages, { recursive: true, encoding: 'utf8' })) {
  if (name.endsWith('.md') && name !== 'index.md') cpSync(join(pages, name), join(html, name));
}
copyFileSync(join(root, 'studio/public/icon.svg'), join(html, 'icon.svg'));
writeFileSync(join(html, 'llms.txt'), llmsText(root, '/').replaceAll('README.md', 'index.md'));
writeFileSync(join(html, 'llms-full.txt'), fullText(root));

const broken = brokenLinks(html);
if (broken.length > 0) {
  console.error(`Broken links:\n${broken.join('\n')}`);
  process.exit(1);
}
if (process.argv.includes('serve')) await serve({ root: site, port: 4173 });
