import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, posix, relative } from 'node:path';

import { renderPage } from '../../scripts/docs/render.ts';
import { withoutMarks } from './markdown.ts';

/** Pages of the root that are part of the site, and their names there. */
const rootPages: Readonly<Record<string, string>> = {
  'AGENTS.md': 'project/code-layout.md',
  'CHANGELOG.md': 'project/changelog.md',
  'CODE_OF_CONDUCT.md': 'project/code-of-conduct.md',
  'CONTRIBUTING.md': 'project/contributing.md',
  'SECURITY.md': 'project/security.md',
  'VERSIONING.md': 'project/versioning.md',
};

/** Where the pages come from and where they are written. */
export interface PagesPlace {
  readonly root: string;
  readonly out: string;
}

/** Copies the pages of the repository to the site, with links that lead to their places there. */
export function writePages({ root, out }: PagesPlace): void {
  const docs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .map((name) => `docs/${name.replaceAll('\\', '/')}`)
    .filter((name) => name.endsWith('.md'));
  for (const page of [...docs, ...Object.keys(rootPages)]) {
    const target = siteName(page);
    if (target === undefined) continue;
    const text = withLinks(withoutMarks(readFileSync(join(root, page), 'utf8')), { root, page });
    mkdirSync(dirname(join(out, target)), { recursive: true });
    writeFileSync(join(out, target), `${text}\n`);
  }
  cpSync(join(root, 'docs/images'), join(out, 'images'), { recursive: true });
  const home = readFileSync(join(root, 'site/home/index.md'), 'utf8');
  writeFileSync(join(out, 'index.md'), withoutMarks(renderPage(home, root)));
}

/** The name of a file of the repository on the site; `undefined` if the site does not have it. */
function siteName(path: string): string | undefined {
  if (path === 'README.md') return 'index.md';
  if (path === 'docs/README.md') return 'overview.md';
  if (/^docs\/(snippets|decisions)\//.test(path)) return undefined;
  if (path.startsWith('docs/'))
    return path.slice('docs/'.length).replace(/README\.md$/, 'index.md');
  return rootPages[path];
}

/** Links to files that the site does not have become their text: there is no public address of the repository yet. */
function withLinks(
  text: string,
  { root, page }: { readonly root: string; readonly page: string },
): string {
  const from = siteName(page) ?? page;
  return outsideCode(text, (prose) =>
    prose.replace(/\[([^\]]*)\]\(([^)\s:]+)\)/g, (whole, label: string, link: string) => {
      const [path = '', anchor] = link.split('#');
      if (path === '') return whole;
      const file = posix.join(dirname(page), path);
      const target = siteName(file);
      if (target === undefined || !(existsSync(join(root, file)) || target === 'index.md')) {
        return `${label} (\`${file}\`)`;
      }
      const to = relative(dirname(from), target).replaceAll('\\', '/');
      return `[${label}](${to.startsWith('.') ? to : `./${to}`}${anchor === undefined ? '' : `#${anchor}`})`;
    }),
  );
}

/** Changes the text between code blocks. */
function outsideCode(text: string, change: (prose: string) => string): string {
  return text
    .split(/(^```[\s\S]*?^```)/m)
    .map((part) => (part.startsWith('```') ? part : change(part)))
    .join('');
}
