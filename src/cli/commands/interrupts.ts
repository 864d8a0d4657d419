import type { PendingInterrupts } from '../../api/agent-api.ts';
import { defineCommand, jsonOption } from '../command.ts';
import { allPages } from '../source/all-pages.ts';
import { agentOption, agentsOptions, chosenAgents, withAgents } from '../source/open-agents.ts';
import { orNothing } from '../source/or-nothing.ts';
import { emptyList } from '../text/empty-list.ts';
import { oneLine } from '../text/safe.ts';
import { table } from '../text/table.ts';
import { when } from '../text/when.ts';

/** `waymark interrupts` */
export const interrupts = defineCommand({
  name: 'interrupts',
  summary: 'List the tool calls that need an approval or an answer',
  usage: '',
  about:
    'The newest are listed first. To answer one, use "waymark chat <agent> --session <session>".',
  examples: [
    'interrupts',
    'interrupts --agent desk --json',
    'interrupts --url http://127.0.0.1:3000',
  ],
  options: { ...agentOption, ...jsonOption, ...agentsOptions },
  async run({ options, terminal }) {
    await withAgents(options, terminal, async ({ agents }) => {
      const waiting: PendingInterrupts[] = [];
      for (const agent of chosenAgents(agents, options.agent)) {
        const listed = allPages((cursor) =>
          agent.listInterrupts(cursor === undefined ? {} : { cursor }),
        );
        waiting.push(...((await orNothing(listed)) ?? []));
      }
      // Over all agents, as each lists its own.
      waiting.sort((a, b) => Date.parse(b.since) - Date.parse(a.since));
      if (options.json) return terminal.print(JSON.stringify({ items: waiting }, null, 2));
      if (waiting.length === 0) {
        return terminal.note(emptyList('sessions that wait for an answer', options));
      }
      terminal.print(waitingTable(waiting));
    });
  },
});

function waitingTable(waiting: readonly PendingInterrupts[]): string {
  return table([
    ['SESSION', 'AGENT', 'SINCE', 'EXPIRES', 'TOOLS', 'TITLE'],
    ...waiting.map(({ sessionId, agent, since, requests, interrupts, title = '-' }) => [
      oneLine(sessionId, 64),
      agent,
      when(since),
      expiry(interrupts),
      oneLine(requests.map(({ toolRequest }) => toolRequest.name).join(', '), 48),
      oneLine(title, 48),
    ]),
  ]);
}

/** When the first of them can no longer be approved. */
function expiry(interrupts: PendingInterrupts['interrupts']): string {
  const [first] = interrupts.flatMap(({ expiresAt }) => expiresAt ?? []).toSorted();
  return first === undefined ? '-' : when(first);
}
