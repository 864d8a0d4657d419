import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { WaymarkError } from '../../core/error.ts';
import { defineCommand, jsonOption } from '../command.ts';
import { projectFiles } from '../init/project-files.ts';
import { version } from '../version.ts';

/** `waymark init` */
export const init = defineCommand({
  name: 'init',
  summary: 'Start a new project',
  usage: '[folder]',
  about:
    'Writes an agent, a manifest and a README into a folder, which must be empty or new; nothing is downloaded.\nThe agent plays a script, so it runs at once and offline; its file says how to give it a real model.',
  examples: ['init my-agents', 'init'],
  options: {
    force: { type: 'boolean', about: 'Also into a folder with files; existing ones are kept' },
    ...jsonOption,
  },
  async run({ args, options, terminal }) {
    const [given = '.'] = args;
    const folder = resolve(terminal.cwd, given);
    const isFull = existsSync(folder) && readdirSync(folder).some((name) => !name.startsWith('.'));
    if (isFull && !options.force) {
      throw new WaymarkError(
        'ALREADY_EXISTS',
        `The folder ${given} has files in it. Name a new one, or give --force to add what is missing.`,
      );
    }
    const written: string[] = [];
    mkdirSync(folder, { recursive: true });
    for (const [name, text] of projectFiles({ name: basename(folder), version: version() })) {
      if (existsSync(join(folder, name))) continue;
      writeFileSync(join(folder, name), text);
      written.push(name);
    }
    if (options.json) {
      terminal.print(JSON.stringify({ folder, files: written }));
      return;
    }
    terminal.print(`Made ${written.join(', ')}.`);
    const steps = [...(given === '.' ? [] : [`cd ${given}`]), 'npm install', 'npm start'];
    terminal.print(`\nNext:\n${steps.map((step) => `  ${step}`).join('\n')}`);
  },
});
