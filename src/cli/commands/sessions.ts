import type { SessionInfo } from '../../protocol/session.ts';
import { defineCommand, jsonOption } from '../command.ts';
import { wholeNumber } from '../parse-arguments.ts';
import { agentOption, agentsOptions, openAgents, pickAgent } from '../source/open-agents.ts';
import { oneLine } from '../text/safe.ts';
import type { Style } from '../text/style.ts';
import { table } from '../text/table.ts';
import { when } from '../text/when.ts';

/** `waymark sessions` */
export const sessions = defineCommand({
  name: 'sessions',
  summary: 'List sessions, newest first',
  usage: '',
  examples: ['sessions', 'sessions --agent story --query lisbon', 'sessions --json'],
  options: {
    ...agentOption,
    query: { type: 'string', short: 'q', value: 'text', about: 'In id, title or metadata' },
    limit: { type: 'string', short: 'n', value: 'number', about: 'At most so many per agent [20]' },
    ...jsonOption,
    ...agentsOptions,
  },
  async run({ options, terminal }) {
    const { query } = options;
    const limit = wholeNumber(options.limit ?? '20', 'limit', 1);
    const open = await openAgents(options, terminal);
    try {
      const chosen =
        options.agent === undefined ? open.agents : [pickAgent(open.agents, options.agent)];
      const items: SessionInfo[] = [];
      for (const agent of chosen) {
        const { metadata } = await agent.describe();
        if (!metadata.timeline) continue;
        const page = await agent.listSessions({ limit, ...(query !== undefined && { query }) });
        items.push(...page.items);
      }
      items.sort((a, b) => b.updatedAt.localeCompare(a.updatedAt));
      if (options.json) terminal.print(JSON.stringify({ items }, null, 2));
      else if (items.length > 0) terminal.print(sessionTable(items, terminal.style));
      else terminal.note('No sessions yet. "waymark chat <agent>" starts one.');
    } finally {
      await open.close();
    }
  },
});

/** Sessions as a table. */
function sessionTable(items: readonly SessionInfo[], style: Style): string {
  return table([
    ['SESSION', 'AGENT', 'TURNS', 'UPDATED', 'TITLE'],
    ...items.map(({ sessionId, agent, turnCount, updatedAt, title, running }) => [
      oneLine(sessionId, 64),
      agent,
      String(turnCount),
      when(updatedAt),
      [oneLine(title ?? ''), running === undefined ? '' : style.warn(`◐ running ${running}`)]
        .filter(Boolean)
        .join('  '),
    ]),
  ]);
}
