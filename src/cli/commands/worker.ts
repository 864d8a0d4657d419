import { defineCommand } from '../command.ts';
import { usageError, wholeNumber } from '../parse-arguments.ts';
import { findAgentsFile, shownPath } from '../source/find-file.ts';
import { loadApp } from '../source/load-app.ts';

/** `waymark worker` */
export const worker = defineCommand({
  name: 'worker',
  summary: 'Work on background runs that servers have accepted',
  usage: '[file]',
  about:
    'The file exports `app`, with an engine that has a queue (waymark/pg-boss). SIGTERM or Ctrl-C drains: nothing new is\nbegun, what runs may finish within the deadline, and the rest goes on in another worker.',
  examples: ['worker', 'worker agents.ts --slots 20 --agents writer,researcher --drain 5000'],
  options: {
    file: { type: 'string', value: 'path', about: 'The file of agents, as the argument' },
    slots: { type: 'string', value: 'number', about: 'Runs at a time [what the engine says]' },
    agents: { type: 'string', value: 'a,b', about: 'Only runs of these agents [all]' },
    drain: { type: 'string', value: 'ms', about: 'How long what runs may take to finish [10000]' },
  },
  async run({ args, options, terminal }) {
    const path = findAgentsFile(options.file ?? args[0], terminal.cwd);
    const slots = options.slots === undefined ? undefined : wholeNumber(options.slots, 'slots');
    if (slots === 0) throw usageError('--slots takes at least 1.', 'worker');
    const deadlineMs = options.drain === undefined ? 10_000 : wholeNumber(options.drain, 'drain');
    const agents = options.agents?.split(',').map((name) => name.trim());
    // It starts working below, with what was asked for, and not as soon as it is loaded.
    const { app } = await loadApp(path, terminal.cwd, 'reading');
    for (const name of agents ?? []) app.agent(name);
    const ended = terminationOf();
    app.engine.start({ ...(slots !== undefined && { slots }), ...(agents && { agents }) });
    terminal.note(`Working on runs of ${shownPath(path, terminal.cwd)} (${app.engine.name}).`);
    await ended;
    terminal.note('Draining …');
    await app.close({ deadlineMs });
  },
});

function terminationOf(): Promise<void> {
  return new Promise((resolve) => {
    process.once('SIGTERM', () => resolve());
    process.once('SIGINT', () => resolve());
  });
}
