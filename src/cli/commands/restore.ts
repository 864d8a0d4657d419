import { defineCommand, jsonOption } from '../command.ts';
import { findSnapshot } from '../source/find-snapshot.ts';
import { agentOption, agentsOptions, withAgents } from '../source/open-agents.ts';
import { oneLine } from '../text/safe.ts';

/** `waymark restore` */
export const restore = defineCommand({
  name: 'restore',
  summary: 'Continue a session from an earlier snapshot',
  usage: '<snapshot>',
  about:
    'Moves the head of the session to the snapshot, so that the next turn continues from there. Nothing is deleted: later\nturns stay as a branch, and you can restore them as well. To create a store from a backup, use restore-backup.',
  hint: 'To create a store from a backup, use "waymark restore-backup".',
  examples: ['restore 019b2f6e-…'],
  options: {
    partial: {
      type: 'boolean',
      about: 'for an aborted background run: keep what it had done, as a new snapshot',
    },
    ...agentOption,
    ...jsonOption,
    ...agentsOptions,
  },
  async run({ args, options, terminal }) {
    const [given = ''] = args;
    await withAgents(options, terminal, async ({ agents, sourceArguments }) => {
      const { agent, snapshot } = await findSnapshot(agents, given, options.agent);
      const { state: _, ...restored } = await agent.restore(
        snapshot.snapshotId,
        options.partial ? { partial: true } : {},
      );
      if (options.json) return terminal.print(JSON.stringify(restored, null, 2));
      const { snapshotId, sessionId, turnIndex } = restored;
      terminal.print(
        `Session ${oneLine(sessionId, 80)} continues from turn ${turnIndex + 1} (${snapshotId}).`,
      );
      terminal.note(
        `Continue with: waymark chat ${agent.name} --session ${sessionId}${sourceArguments}`,
      );
    });
  },
});
