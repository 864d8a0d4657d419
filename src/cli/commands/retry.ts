import type { DeadRun } from '../../protocol/run.ts';
import { defineCommand, jsonOption } from '../command.ts';
import { findSnapshot } from '../source/find-snapshot.ts';
import { agentOption, agentsOptions, openAgents, pickAgent } from '../source/open-agents.ts';
import { oneLine } from '../text/safe.ts';
import { table } from '../text/table.ts';
import { when } from '../text/when.ts';

/** `waymark retry` */
export const retry = defineCommand({
  name: 'retry',
  summary: 'Retry a run that was given up, or list those that were',
  usage: '[snapshot]',
  about:
    'A run whose process dies too often is given up: it ends as "failed" and stays in this list. Fix the cause, then\nretry it: its remaining inputs are started as a new run of the same session. Without a snapshot, lists the\nruns that were given up, with the error of each attempt.',
  examples: ['retry --url http://127.0.0.1:3000', 'retry 019b2f6e-… --url http://127.0.0.1:3000'],
  options: { ...agentOption, ...jsonOption, ...agentsOptions },
  async run({ args, options, terminal }) {
    const [snapshotId] = args;
    const open = await openAgents(options, terminal);
    try {
      if (snapshotId !== undefined) {
        const { agent } = await findSnapshot(open.agents, snapshotId, options.agent);
        const begun = await agent.retryRun(snapshotId);
        terminal.print(options.json ? JSON.stringify(begun) : `begun again as ${begun.snapshotId}`);
        return;
      }
      const chosen =
        options.agent === undefined ? open.agents : [pickAgent(open.agents, options.agent)];
      const items = (await Promise.all(chosen.map((agent) => agent.listDeadRuns()))).flat();
      items.sort((a, b) => a.since.localeCompare(b.since));
      if (options.json) terminal.print(JSON.stringify({ items }, null, 2));
      else if (items.length > 0) terminal.print(deadRunTable(items));
      else terminal.note('No run was given up.');
    } finally {
      await open.close();
    }
  },
});

/** A line for each attempt, so that no error is left out. */
function deadRunTable(items: readonly DeadRun[]): string {
  return table([
    ['SNAPSHOT', 'AGENT', 'SINCE', 'ATTEMPT', 'ERROR'],
    ...items.flatMap(({ snapshotId, agent, since, attempts }) =>
      attempts.map(({ attempt, error }, n) => [
        ...(n === 0 ? [snapshotId, agent, when(since)] : ['', '', '']),
        String(attempt),
        oneLine(error, 120),
      ]),
    ),
  ]);
}
