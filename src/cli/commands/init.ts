import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { WaymarkError } from '../../core/error.ts';
import { defineCommand, flag, jsonOption, option } from '../command.ts';
import { packageRoot, version } from '../package-root.ts';
import { didYouMean, UsageError } from '../parse-arguments.ts';

/** The templates: the folders that each consists of (a later one overrides files of earlier ones), and how its project starts. */
const templates = {
  default: { layers: ['shared', 'default'], start: 'npm start' },
  hono: { layers: ['shared', 'auth', 'hono'], start: 'npm start' },
  next: { layers: ['shared', 'next'], start: 'npm run dev' },
  worker: {
    layers: ['shared', 'auth', 'worker'],
    start: 'docker compose up -d, then npm start and npm run worker',
  },
  cloudflare: { layers: ['shared', 'auth', 'cloudflare'], start: 'npm start' },
} as const;

export type Template = keyof typeof templates;

export const templateNames = Object.keys(templates) as readonly Template[];

export const init = defineCommand({
  name: 'init',
  summary: 'Create a project',
  usage: '[folder]',
  about:
    'Writes an agent with a tool, typed state, an approval and a test into a new or empty folder. Nothing is downloaded. The\nmodel is scripted, so the project runs without an API key; model.ts shows how to use a real model.\nTemplates: default (Studio and terminal), hono (a Hono server), next (a Next app), worker (a server and workers with\nPostgres), cloudflare (a Worker with a Durable Object).',
  examples: ['init my-agents', 'init my-app --template next', 'init'],
  options: {
    template: option('name', 'default, hono, next, worker or cloudflare [default]', { short: 't' }),
    force: flag('Also write into a folder that has files; existing files are kept', {
      destructive: true,
    }),
    ...jsonOption,
  },
  async run({ args: [given = '.'], options, terminal }) {
    const { template: name = 'default', force } = options;
    const template = templateNames.find((each) => each === name);
    if (template === undefined) {
      const hint = didYouMean(name, templateNames);
      throw new UsageError(
        `There is no template "${name}".${hint} Templates: ${templateNames.join(', ')}.`,
      );
    }
    const folder = resolve(terminal.cwd, given);
    const isFull = existsSync(folder) && readdirSync(folder).some((file) => !file.startsWith('.'));
    if (isFull && !force) {
      throw new WaymarkError(
        'ALREADY_EXISTS',
        `The folder ${given} is not empty. Name a new one, such as "waymark init my-agents", or use --force to add the missing files.`,
      );
    }
    const files = writeProject(folder, template);
    const where = given === '.' ? 'this folder' : given;
    const enter = given === '.' ? '' : `  cd ${given}\n`;
    return {
      receipt: { folder, template, files },
      text: `Created ${files.join(', ')} in ${where}.\n\nNext:\n${enter}  npm install\n  ${templates[template].start}`,
    };
  },
});

/** Writes the files that do not exist yet; returns their paths. */
function writeProject(folder: string, template: Template): string[] {
  const sources = new Map<string, string>();
  for (const layer of templates[template].layers) {
    const root = join(packageRoot(), 'templates', layer);
    for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const source = join(entry.parentPath, entry.name);
      const path = relative(root, source).replaceAll('\\', '/');
      // npm leaves files of this name out of packages, so it is stored without the dot.
      sources.set(path === 'gitignore' ? '.gitignore' : path, source);
    }
  }
  const written: string[] = [];
  for (const [path, source] of [...sources].sort(([a], [b]) => a.localeCompare(b))) {
    const target = join(folder, path);
    if (existsSync(target)) continue;
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, fillIn(path, readFileSync(source, 'utf8'), basename(folder)));
    written.push(path);
  }
  return written;
}

function fillIn(path: string, text: string, name: string): string {
  if (path === 'README.md') return text.replaceAll('{name}', name);
  if (path !== 'package.json') return text;
  const clean = name.toLowerCase().replace(/[^a-z0-9._-]+/g, '-');
  const packageName = clean.replace(/^[._-]+/, '') || 'my-agents';
  return text
    .replace('"name": "my-agents"', `"name": ${JSON.stringify(packageName)}`)
    .replace('"waymark": "*"', `"waymark": "^${version()}"`);
}
