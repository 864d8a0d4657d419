import { failedPrecondition } from '../../core/error.ts';
import { defined } from '../../core/json/json.ts';
import { defineCommand, number, option } from '../command.ts';
import { closeApp, loadApp } from '../source/load-app.ts';
import { interrupted } from '../terminal.ts';

export const worker = defineCommand({
  name: 'worker',
  summary: 'Process background runs from a queue',
  usage: '[file]',
  about:
    'The file exports `app`, with an engine that has a queue, such as pgBossEngine from waymark/pg-boss. On SIGTERM or Ctrl-C\nthe worker drains: it starts no new runs, waits for running ones until the deadline, and hands over the rest.',
  examples: [
    'worker',
    'worker agents.ts --slots 20 --agents writer,researcher --drain 5000',
    'worker agents.ts --until-idle 50000',
  ],
  options: {
    file: option('path', 'The file that exports the app; same as the argument', { short: 'f' }),
    slots: number('number', 'Number of concurrent runs [the setting of the engine]', { least: 1 }),
    agents: option('a,b', 'Only runs of these agents [all]'),
    'until-idle': number(
      'ms',
      'Exit when no run is left, or after this time; for cron jobs [never]',
    ),
    drain: number('ms', 'How long running turns may take to finish [10000]'),
  },
  async run({ args, options, terminal }) {
    const { slots, drain: grace = 10_000, 'until-idle': timeout } = options;
    const agents = options.agents?.split(',').map((name) => name.trim());
    const limits = defined({ slots, agents });
    // The engine starts below, with these options, and not as soon as the app is loaded.
    const { app, shown } = await loadApp(options.file ?? args[0], terminal.cwd, 'reading');
    try {
      for (const name of agents ?? []) app.agent(name);
      if (timeout === undefined && app.engine.dispatcher === undefined) {
        throw failedPrecondition(
          `The app in ${shown} has no queue: its engine "${app.engine.name}" runs background work in the process that accepted it, so a worker has nothing to do. Set \`engine: pgBossEngine({ pool })\` of waymark/pg-boss, or start the app with "waymark serve".`,
        );
      }
      const ended = interrupted(terminal);
      if (timeout === undefined) {
        app.engine.start(limits);
        terminal.note(
          `Working on runs of ${shown} (${app.engine.name}). Press Ctrl-C to drain and stop.`,
        );
        await ended;
        terminal.note('Draining …');
      } else {
        const result = await Promise.race([app.work({ ...limits, timeout }), ended]);
        if (result?.isIdle) terminal.note('No run is left.');
        else terminal.note(result ? 'The time is over. Draining …' : 'Draining …');
      }
    } catch (error) {
      // The error that is reported is the one that made the worker end.
      await closeApp(app, grace).catch(() => {});
      throw error;
    }
    await app.close({ grace });
  },
});
