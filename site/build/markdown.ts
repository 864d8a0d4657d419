import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { contents } from '../../scripts/docs/contents.ts';

/** A page without the comments that say where its generated parts come from. */
export function withoutMarks(text: string): string {
  return text.replace(/^<!-- .*? -->\n+/gm, '').trim();
}

/** All pages in one text, for a model that reads the whole documentation at once. */
export function fullText(root: string): string {
  const pages = contents(root)
    .flatMap((section) => section.pages)
    .map(({ page }) => {
      const text = withoutMarks(readFileSync(join(root, 'docs', page), 'utf8'));
      return `<!-- ${page} -->\n\n${text}`;
    });
  return `${pages.join('\n\n')}\n`;
}
