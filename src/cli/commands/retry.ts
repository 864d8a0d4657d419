import type { DeadRun } from '../../protocol/run.ts';
import { defineCommand, jsonOption } from '../command.ts';
import { findSnapshot } from '../source/find-snapshot.ts';
import { agentOption, agentsOptions, chosenAgents, openAgents } from '../source/open-agents.ts';
import { emptyList } from '../text/empty-list.ts';
import { oneLine } from '../text/safe.ts';
import { table } from '../text/table.ts';
import { when } from '../text/when.ts';

/** `waymark retry` */
export const retry = defineCommand({
  name: 'retry',
  summary: 'Retry a failed run, or list failed runs',
  usage: '[run]',
  about:
    'A run whose process dies too often ends as "failed". Fix the cause, then retry: the remaining inputs start as a new run\nof the same session. Without a run, lists the failed runs with the error of each attempt.',
  examples: ['retry --url http://127.0.0.1:3000', 'retry 019b2f6e-… --url http://127.0.0.1:3000'],
  options: { ...agentOption, ...jsonOption, ...agentsOptions },
  async run({ args, options, terminal }) {
    const [given] = args;
    const open = await openAgents(options, terminal);
    try {
      if (given !== undefined) {
        const { agent, snapshot } = await findSnapshot(open.agents, given, options.agent);
        const started = await agent.retryRun(snapshot.snapshotId);
        terminal.print(
          options.json ? JSON.stringify(started) : `Started as run ${started.snapshotId}.`,
        );
        return;
      }
      const chosen = chosenAgents(open.agents, options.agent);
      const items = (await Promise.all(chosen.map((agent) => agent.listDeadRuns()))).flatMap(
        (page) => page.items,
      );
      items.sort((a, b) => a.since.localeCompare(b.since));
      if (options.json) terminal.print(JSON.stringify({ items }, null, 2));
      else if (items.length > 0) terminal.print(deadRunTable(items));
      else terminal.note(emptyList('failed runs', options));
    } finally {
      await open.close();
    }
  },
});

/** One line per attempt, with its error. */
function deadRunTable(items: readonly DeadRun[]): string {
  return table([
    ['RUN', 'AGENT', 'SINCE', 'ATTEMPT', 'ERROR'],
    ...items.flatMap(({ snapshotId, agent, since, attempts }) =>
      attempts.map(({ attempt, error }, n) => [
        ...(n === 0 ? [snapshotId, agent, when(since)] : ['', '', '']),
        String(attempt),
        oneLine(error, 120),
      ]),
    ),
  ]);
}
