import { WaymarkError } from '../../core/error.ts';
import { defineCommand, jsonOption } from '../command.ts';
import { findSnapshot } from '../source/find-snapshot.ts';
import { agentOption, agentsOptions, openAgents } from '../source/open-agents.ts';

/** `waymark abort` */
export const abort = defineCommand({
  name: 'abort',
  summary: 'Stop a turn or a background run',
  usage: '<snapshot>',
  about:
    'A background run becomes "aborted" at once. A turn that somebody waits for is asked to stop, keeps what\nthe model had said, and reads "pending" until it has. What had ended stays as it was.',
  examples: ['abort 019b2f6e-… --url http://127.0.0.1:3000'],
  options: { ...agentOption, ...jsonOption, ...agentsOptions },
  async run({ args, options, terminal }) {
    const [snapshotId = ''] = args;
    const open = await openAgents(options, terminal);
    try {
      const { agent } = await findSnapshot(open.agents, snapshotId, options.agent);
      const status = await agent.abort(snapshotId);
      if (status === undefined) {
        throw new WaymarkError('NOT_FOUND', `There is no run "${snapshotId}".`);
      }
      if (options.json) terminal.print(JSON.stringify({ snapshotId, status }));
      else terminal.print(status === 'pending' ? 'pending: it was asked to stop' : status);
    } finally {
      await open.close();
    }
  },
});
