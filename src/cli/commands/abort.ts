import { WaymarkError } from '../../core/error.ts';
import { defineCommand, jsonOption } from '../command.ts';
import { findSnapshot } from '../source/find-snapshot.ts';
import { agentOption, agentsOptions, openAgents } from '../source/open-agents.ts';

/** `waymark abort` */
export const abort = defineCommand({
  name: 'abort',
  summary: 'Stop a turn or a background run',
  usage: '<run>',
  destructive: true,
  about:
    'A background run is marked as "aborted" immediately. A turn with a waiting caller gets a stop request: it stays\n"pending" until it has stopped, and keeps its partial answer. A run that has already ended does not change.',
  examples: ['abort 019b2f6e-…', 'abort 019b2f6e-… --url http://127.0.0.1:3000'],
  options: { ...agentOption, ...jsonOption, ...agentsOptions },
  async run({ args, options, terminal }) {
    const [given = ''] = args;
    const open = await openAgents(options, terminal);
    try {
      const { agent, snapshot } = await findSnapshot(open.agents, given, options.agent);
      const { snapshotId } = snapshot;
      const status = await agent.abort(snapshotId);
      if (status === undefined) {
        throw new WaymarkError('NOT_FOUND', `There is no run "${snapshotId}".`);
      }
      if (options.json) terminal.print(JSON.stringify({ snapshotId, status }));
      else if (status === snapshot.status && status !== 'pending') {
        terminal.print(`already ended: ${status}`);
      } else terminal.print(status === 'pending' ? 'pending: the turn was asked to stop' : status);
    } finally {
      await open.close();
    }
  },
});
