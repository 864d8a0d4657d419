import { defineCommand, jsonOption } from '../command.ts';
import { usageError } from '../parse-arguments.ts';
import { findSnapshot } from '../source/find-snapshot.ts';
import { agentOption, agentsOptions, withAgents } from '../source/open-agents.ts';
import { oneLine } from '../text/safe.ts';

/** `waymark label` */
export const label = defineCommand({
  name: 'label',
  summary: 'Label a snapshot, so that pruning keeps it',
  usage: '<snapshot> [label]',
  about: 'A new label replaces the old one.',
  examples: ['label 019b2f6e-… "before the refund"', 'label 019b2f6e-… --remove'],
  options: {
    remove: { type: 'boolean', about: 'Remove the label', destructive: true },
    ...agentOption,
    ...jsonOption,
    ...agentsOptions,
  },
  async run({ args, options, terminal }) {
    const [given = '', text] = args;
    if ((text === undefined) !== (options.remove === true)) {
      throw usageError('Give a label, or --remove.', 'label');
    }
    await withAgents(options, terminal, async ({ agents }) => {
      const { agent, snapshot } = await findSnapshot(agents, given, options.agent);
      const { state: _, ...labelled } = await agent.label(snapshot.snapshotId, text ?? null);
      if (options.json) return terminal.print(JSON.stringify(labelled, null, 2));
      const { snapshotId } = labelled;
      terminal.print(
        text === undefined
          ? `Removed the label of ${snapshotId}.`
          : `Labelled ${snapshotId} "${oneLine(text)}".`,
      );
    });
  },
});
