import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A page as the index of the documentation lists it. */
export interface Listed {
  readonly title: string;
  /** The file, from `docs/`. */
  readonly page: string;
}

/** A group of pages under one heading. */
export interface Section {
  readonly title: string;
  readonly pages: readonly Listed[];
}

/** The sections of `docs/README.md`, in its order: the navigation of the site and `llms.txt` are made from them. */
export function contents(root: string): Section[] {
  const text = readFileSync(join(root, 'docs/README.md'), 'utf8');
  const [, ...rest] = text.split(/^\*\*(.+)\*\*$/m);
  const sections: Section[] = [];
  for (let at = 0; at + 1 < rest.length; at += 2) {
    const [title = '', links = ''] = rest.slice(at, at + 2);
    const pages = [...links.matchAll(/\[([^\]]+)\]\(([^)#]+\.md)\)/g)].map(
      ([, name = '', page = '']) => ({ title: name, page }),
    );
    sections.push({ title, pages });
  }
  if (sections.length === 0) throw new Error('docs/README.md has no section such as "**Start**".');
  return sections;
}
