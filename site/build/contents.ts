import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { contents } from '../../scripts/docs/contents.ts';

/** A group of the side navigation, in the form that VitePress takes. */
export interface Group {
  readonly text: string;
  readonly items: { readonly text: string; readonly link: string }[];
}

/** The navigation of the guides, from the index of the documentation, and of the pages about the project. */
export function guideGroups(root: string): Group[] {
  const groups = contents(root).map(({ title, pages }) => ({
    text: title,
    items: pages.map(({ title: text, page }) => ({
      text,
      link: `/${page.replace(/README\.md$/, '').replace(/\.md$/, '')}`,
    })),
  }));
  const project = [
    'changelog',
    'versioning',
    'security',
    'contributing',
    'code-layout',
    'code-of-conduct',
  ];
  const about = {
    text: 'Project',
    items: project.map((name) => ({ text: titleOf(name), link: `/project/${name}` })),
  };
  return [
    ...groups.map((group) => ({
      ...group,
      items: group.items.concat(group.text === 'Reference' ? [{ text: 'API', link: '/api/' }] : []),
    })),
    about,
  ];
}

/**
 * The navigation of the API reference, by address: the entry points, then the functions, classes and values of the current one.
 * Types are in its overview and in the search: every page would carry hundreds of links.
 */
export function apiSidebar(api: string): Record<string, Group[]> {
  const entries = readdirSync(api, { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => name.endsWith('/index.md'))
    .map((name) => name.replace(/\/index\.md$/, ''))
    .sort();
  const all = {
    text: 'Entry points',
    items: entries.map((entry) => ({ text: entry, link: `/api/${entry}/` })),
  };
  const own = entries.map((entry) => {
    const links = readFileSync(join(api, entry, 'index.md'), 'utf8').matchAll(
      /\[([^\]]+)\]\(((?:functions|classes|variables)\/[^)]+)\.md\)/g,
    );
    const items = [...links]
      .map(([, text = '', page]) => ({ text, link: `/api/${entry}/${page}` }))
      .sort((a, b) => a.text.localeCompare(b.text, 'en'));
    return [`/api/${entry}/`, [{ text: entry, items }, all]] as const;
  });
  return Object.fromEntries([...own, ['/api/', [all]] as const]);
}

const titleOf = (name: string): string =>
  `${name.charAt(0).toUpperCase()}${name.slice(1).replaceAll('-', ' ')}`;
