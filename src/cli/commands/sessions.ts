import type { SessionInfo } from '../../protocol/session.ts';
import { defineCommand, jsonOption } from '../command.ts';
import { wholeNumber } from '../parse-arguments.ts';
import { agentOption, agentsOptions, chosenAgents, withAgents } from '../source/open-agents.ts';
import { emptyList } from '../text/empty-list.ts';
import { sessionTable } from '../text/session-table.ts';

/** `waymark sessions` */
export const sessions = defineCommand({
  name: 'sessions',
  summary: 'List sessions, newest first',
  usage: '',
  examples: [
    'sessions',
    'sessions --agent story --query lisbon',
    'sessions --failed --owner ada',
    'sessions --json',
  ],
  options: {
    ...agentOption,
    query: {
      type: 'string',
      short: 'q',
      value: 'text',
      about: 'Search id, title, metadata and messages',
    },
    failed: { type: 'boolean', about: 'Only sessions whose last turn failed' },
    waiting: { type: 'boolean', about: 'Only sessions in which a tool call waits for an answer' },
    labelled: { type: 'boolean', about: 'Only sessions with a labelled snapshot' },
    limit: { type: 'string', short: 'n', value: 'number', about: 'Sessions per agent [20]' },
    ...jsonOption,
    ...agentsOptions,
  },
  async run({ options, terminal }) {
    const { query, failed = false, waiting = false, labelled = false } = options;
    const filter = { ...(query !== undefined && { query }), failed, waiting, labelled };
    const isFiltered = query !== undefined || failed || waiting || labelled;
    const limit = wholeNumber(options.limit ?? '20', 'limit', 1);
    await withAgents(options, terminal, async ({ agents }) => {
      const items: SessionInfo[] = [];
      let hasStore = false;
      let hasMore = false;
      for (const agent of chosenAgents(agents, options.agent)) {
        const { metadata } = await agent.describe();
        if (!metadata.timeline) continue;
        hasStore = true;
        const page = await agent.listSessions({ limit, ...filter });
        items.push(...page.items);
        hasMore ||= page.next !== undefined;
      }
      items.sort((a, b) => b.updatedAt.localeCompare(a.updatedAt));
      if (options.json) return terminal.print(JSON.stringify({ items }, null, 2));
      if (!hasStore) return terminal.note(noStore(options.agent));
      if (items.length === 0) {
        const start = isFiltered ? '' : ' To start a session, use "waymark chat <agent>".';
        return terminal.note(emptyList('sessions', options) + start);
      }
      terminal.print(sessionTable(items, terminal.style));
      if (hasMore) terminal.note('There are more. To list them, use --limit.');
    });
  },
});

function noStore(agent: string | undefined): string {
  return agent === undefined
    ? 'No agent of this app has a store, so no sessions are kept.'
    : `Agent "${agent}" has no store, so its sessions are not kept.`;
}
