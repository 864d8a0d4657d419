import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../package-root.ts';

/** The folders that each template consists of; a later folder overrides files of earlier ones. */
const templates = {
  default: ['shared', 'default'],
  hono: ['shared', 'auth', 'hono'],
  next: ['shared', 'next'],
  worker: ['shared', 'auth', 'worker'],
} as const;

export type Template = keyof typeof templates;

/** The names of the templates. */
export const templateNames = Object.keys(templates) as readonly Template[];

/** Whether a template has this name. */
export function isTemplate(name: string): name is Template {
  return Object.hasOwn(templates, name);
}

/** The files of a new project: texts by path. */
export function projectFiles(
  template: Template,
  project: { readonly name: string; readonly version: string },
): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  for (const layer of templates[template]) {
    const folder = join(packageRoot(), 'templates', layer);
    for (const path of filesBelow(folder)) {
      const text = readFileSync(join(folder, path), 'utf8');
      // npm leaves files of this name out of packages, so it is stored without the dot.
      files.set(path === 'gitignore' ? '.gitignore' : path, fillIn(path, text, project));
    }
  }
  return new Map([...files].sort(([a], [b]) => a.localeCompare(b)));
}

function filesBelow(folder: string, below = ''): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(join(folder, below), { withFileTypes: true }).flatMap((entry) => {
    const path = below === '' ? entry.name : `${below}/${entry.name}`;
    return entry.isDirectory() ? filesBelow(folder, path) : [path];
  });
}

function fillIn(
  path: string,
  text: string,
  { name, version }: { readonly name: string; readonly version: string },
): string {
  if (path === 'README.md') return text.replaceAll('{name}', name);
  if (path !== 'package.json') return text;
  return text
    .replace('"name": "my-agents"', `"name": ${JSON.stringify(packageName(name))}`)
    .replace('"waymark": "*"', `"waymark": "^${version}"`);
}

function packageName(name: string): string {
  const clean = name.toLowerCase().replace(/[^a-z0-9._-]+/g, '-');
  return clean.replace(/^[._-]+/, '') || 'my-agents';
}
