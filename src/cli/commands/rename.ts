import { defineCommand, jsonOption } from '../command.ts';
import { usageError } from '../parse-arguments.ts';
import { findSession } from '../source/find-session.ts';
import { agentOption, agentsOptions, withAgents } from '../source/open-agents.ts';
import { oneLine } from '../text/safe.ts';

/** `waymark rename` */
export const rename = defineCommand({
  name: 'rename',
  summary: 'Change the title of a session',
  usage: '<session> [title]',
  examples: ['rename 019b2f6e-… "Two days in Lisbon"', 'rename 019b2f6e-… --remove'],
  options: {
    remove: { type: 'boolean', about: 'Remove the title', destructive: true },
    ...agentOption,
    ...jsonOption,
    ...agentsOptions,
  },
  async run({ args, options, terminal }) {
    const [given = '', title] = args;
    if ((title === undefined) !== (options.remove === true)) {
      throw usageError('Give a title, or --remove.', 'rename');
    }
    await withAgents(options, terminal, async ({ agents }) => {
      const { agent, session } = await findSession(agents, given, options.agent);
      const renamed = await agent.updateSession(session.sessionId, { title: title ?? null });
      if (options.json) return terminal.print(JSON.stringify(renamed, null, 2));
      const id = oneLine(renamed.sessionId, 80);
      terminal.print(
        title === undefined
          ? `Removed the title of session ${id}.`
          : `Renamed session ${id} to "${oneLine(title)}".`,
      );
    });
  },
});
