import { defineCommand, jsonOption } from '../command.ts';
import { findSnapshot } from '../source/find-snapshot.ts';
import { agentOption, agentsOptions, withAgents } from '../source/open-agents.ts';
import { oneLine } from '../text/safe.ts';

/** `waymark fork` */
export const fork = defineCommand({
  name: 'fork',
  summary: 'Start a new session from a snapshot',
  usage: '<snapshot>',
  about:
    'The new session shares the history up to the snapshot. The original session does not change.',
  examples: ['fork 019b2f6e-…', 'fork 019b2f6e-… --session museums'],
  options: {
    session: { type: 'string', value: 'id', about: 'The id of the new session [generated]' },
    ...agentOption,
    ...jsonOption,
    ...agentsOptions,
  },
  async run({ args, options, terminal }) {
    const [given = ''] = args;
    const { session } = options;
    await withAgents(options, terminal, async ({ agents, sourceArguments }) => {
      const { agent, snapshot } = await findSnapshot(agents, given, options.agent);
      const { state: _, ...first } = await agent.fork(
        snapshot.snapshotId,
        session === undefined ? {} : { sessionId: session },
      );
      if (options.json) return terminal.print(JSON.stringify(first, null, 2));
      terminal.print(`Forked into session ${oneLine(first.sessionId, 80)}.`);
      terminal.note(
        `Continue with: waymark chat ${agent.name} --session ${first.sessionId}${sourceArguments}`,
      );
    });
  },
});
