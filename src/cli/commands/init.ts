import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { WaymarkError } from '../../core/error.ts';
import { defineCommand, jsonOption } from '../command.ts';
import { isTemplate, projectFiles, type Template, templateNames } from '../init/project-files.ts';
import { usageError } from '../parse-arguments.ts';
import { nearest } from '../text/nearest.ts';
import { version } from '../version.ts';

/** `waymark init` */
export const init = defineCommand({
  name: 'init',
  summary: 'Create a project',
  usage: '[folder]',
  about:
    'Writes an agent with a tool, typed state, an approval and a test into a new or empty folder. Nothing is downloaded. The\nmodel is scripted, so the project runs without an API key; model.ts shows how to use a real model.\nTemplates: default (Studio and terminal), hono (a Hono server), next (a Next app), worker (a server and workers with\nPostgres).',
  examples: ['init my-agents', 'init my-app --template next', 'init'],
  options: {
    template: {
      type: 'string',
      short: 't',
      value: 'name',
      about: 'default, hono, next or worker [default]',
    },
    force: {
      type: 'boolean',
      about: 'Also write into a folder that has files; existing files are kept',
      destructive: true,
    },
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
