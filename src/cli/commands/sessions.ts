import type { PendingInterrupts } from '../../api/agent-api.ts';
import { defined } from '../../core/json/json.ts';
import type { SessionInfo } from '../../protocol/session.ts';
import { flag, number, option } from '../command.ts';
import { allPages, findSession, orNothing, readTimeline } from '../source/find.ts';
import { agentOption, agentsCommand } from '../source/open-agents.ts';
import { oneLine, table, when } from '../text/format.ts';
import { emptyList, sessionTable, snapshotTexts, timelineTree } from '../text/session-text.ts';

export const sessions = agentsCommand({
  name: 'sessions',
  summary: 'List sessions, newest first',
  examples: [
    'sessions',
    'sessions --agent story --query lisbon',
    'sessions --failed --owner ada',
    'sessions --json',
  ],
  options: {
    ...agentOption,
    query: option('text', 'Search id, title, metadata and messages', { short: 'q' }),
    failed: flag('Only sessions whose last turn failed'),
    waiting: flag('Only sessions in which a tool call waits for an answer'),
    labelled: flag('Only sessions with a labelled snapshot'),
    limit: number('number', 'Sessions per agent [20]', { short: 'n', least: 1 }),
  },
  async run({ options, terminal, agents }) {
    const { query, failed = false, waiting = false, labelled = false, limit = 20 } = options;
    const filter = { ...defined({ query }), failed, waiting, labelled };
    const items: SessionInfo[] = [];
    let hasStore = false;
    let hasMore = false;
    for (const agent of agents) {
      const { metadata } = await agent.describe();
      if (!metadata.timeline) continue;
      hasStore = true;
      const page = await agent.listSessions({ limit, ...filter });
      items.push(...page.items);
      hasMore ||= page.next !== undefined;
    }
    items.sort((a, b) => b.updatedAt.localeCompare(a.updatedAt));
    const json = { items };
    if (!hasStore) return { json, note: noStore(options.agent) };
    if (items.length === 0) {
      const isFiltered = query !== undefined || failed || waiting || labelled;
      const start = isFiltered ? '' : ' To start a session, use "waymark chat <agent>".';
      return { json, note: emptyList('sessions', options) + start };
    }
    return {
      json,
      text: sessionTable(items, terminal.style),
      note: hasMore ? 'There are more. To list them, use --limit.' : undefined,
    };
  },
});

function noStore(agent: string | undefined): string {
  return agent === undefined
    ? 'No agent of this app has a store, so no sessions are kept.'
    : `Agent "${agent}" has no store, so its sessions are not kept.`;
}

export const snapshots = agentsCommand({
  name: 'snapshots',
  summary: 'Show the snapshots of a session as a tree',
  usage: '<session>',
  about:
    'Marks: ◉ head, ● ancestor of the head, ○ orphaned, ✗ failed, ▬ aborted, ◐ pending, ⚑ labelled.\nThe number is the turn.',
  examples: ['snapshots 019b2f6e-…', 'snapshots 019b2f6e-… --json'],
  async run({ args: [given = ''], options, terminal, agents }) {
    const { agent, session } = await findSession(agents, given);
    const { sessionId, headId } = session;
    const items = await readTimeline(agent, sessionId);
    const json = { headId, items };
    if (options.json) return { json };
    if (items.length === 0) return { json, note: `Session ${sessionId} has no snapshots yet.` };
    const texts = await snapshotTexts(agent, items);
    return { json, text: timelineTree({ snapshots: items, headId, texts }, terminal.style) };
  },
});

export const interrupts = agentsCommand({
  name: 'interrupts',
  summary: 'List the tool calls that need an approval or an answer',
  about:
    'The newest are listed first. To answer one, use "waymark chat <agent> --session <session>".',
  examples: [
    'interrupts',
    'interrupts --agent desk --json',
    'interrupts --url http://127.0.0.1:3000',
  ],
  async run({ options, agents }) {
    const waiting: PendingInterrupts[] = [];
    for (const agent of agents) {
      waiting.push(...((await orNothing(allPages((page) => agent.listInterrupts(page)))) ?? []));
    }
    // Over all agents, as each lists its own.
    waiting.sort((a, b) => Date.parse(b.since) - Date.parse(a.since));
    const json = { items: waiting };
    if (waiting.length > 0) return { json, text: waitingTable(waiting) };
    return { json, note: emptyList('sessions that wait for an answer', options) };
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

/** The time from which the first of them can no longer be approved. */
function expiry(interrupts: PendingInterrupts['interrupts']): string {
  const [first] = interrupts.flatMap(({ expiresAt }) => expiresAt ?? []).toSorted();
  return first === undefined ? '-' : when(first);
}
