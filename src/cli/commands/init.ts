import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { WaymarkError } from '../../core/error.ts';
import { defineCommand, flag, jsonOption, option } from '../command.ts';
import { packageRoot, version } from '../package-root.ts';
import { nearest, usageError } from '../parse-arguments.ts';

/** `waymark init` */
export const init = defineCommand({
  name: 'init',
  summary: 'Create a project',
  usage: '[folder]',
  about:
    'Writes an agent with a tool, typed state, an approval and a test into a new or empty folder. Nothing is downloaded. The\nmodel is scripted, so the project runs without an API key; model.ts shows how to use a real model.\nTemplates: default (Studio and terminal), hono (a Hono server), next (a Next app), worker (a server and workers with\nPostgres).',
  examples: ['init my-agents', 'init my-app --template next', 'init'],
  options: {
    template: option('name', 'default, hono, next or worker [default]', { short: 't' }),
    force: flag('Also write into a folder that has files; existing files are kept', {
      destructive: true,
    }),
    ...jsonOption,
  },
  async run({ args, options, terminal }) {
    const [given = '.'] = args;
    const template = templateOf(options.template ?? 'default');
    const folder = resolve(terminal.cwd, given);
    const isFull = existsSync(folder) && readdirSync(folder).some((name) => !name.startsWith('.'));
    if (isFull && !options.force) {
      throw new WaymarkError(
        'ALREADY_EXISTS',
        `The folder ${given} is not empty. Name a new one, such as "waymark init my-agents", or use --force to add the missing files.`,
      );
    }
    const written = write(folder, template);
    if (options.json) {
      terminal.print(JSON.stringify({ folder, template, files: written }));
      return;
    }
    const where = given === '.' ? 'this folder' : given;
    terminal.print(`Created ${written.join(', ')} in ${where}.`);
    const steps = [...(given === '.' ? [] : [`cd ${given}`]), 'npm install', startOf[template]];
    terminal.print(`\nNext:\n${steps.map((step) => `  ${step}`).join('\n')}`);
  },
});

const startOf: Readonly<Record<Template, string>> = {
  default: 'npm start',
  hono: 'npm start',
  next: 'npm run dev',
  worker: 'docker compose up -d, then npm start and npm run worker',
};

function templateOf(name: string): Template {
  if (isTemplate(name)) return name;
  const near = nearest(name, templateNames);
  const hint = near === undefined ? '' : ` Did you mean "${near}"?`;
  throw usageError(
    `There is no template "${name}".${hint} Templates: ${templateNames.join(', ')}.`,
    'init',
  );
}

function write(folder: string, template: Template): string[] {
  const written: string[] = [];
  const project = { name: basename(folder), version: version() };
  for (const [path, text] of projectFiles(template, project)) {
    const target = join(folder, path);
    if (existsSync(target)) continue;
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, text);
    written.push(path);
  }
  return written;
}

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
function isTemplate(name: string): name is Template {
  return Object.hasOwn(templates, name);
}

/** The files of a new project: texts by path. */
function projectFiles(
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
