import { defineCommand, jsonOption } from '../command.ts';
import { findSession } from '../source/find-session.ts';
import { agentOption, agentsOptions, openAgents } from '../source/open-agents.ts';
import { readTimeline } from '../source/read-timeline.ts';
import { snapshotTexts } from '../text/snapshot-texts.ts';
import { timelineTree } from '../text/timeline-tree.ts';

/** `waymark snapshots` */
export const snapshots = defineCommand({
  name: 'snapshots',
  summary: 'Show the snapshots of a session as a tree',
  usage: '<session>',
  about:
    'Marks: ◉ head, ● ancestor of the head, ○ orphaned, ✗ failed, ▬ aborted, ◐ pending, ⚑ labelled.\nThe number is the turn.',
  examples: ['snapshots 019b2f6e-…', 'snapshots 019b2f6e-… --json'],
  options: { ...agentOption, ...jsonOption, ...agentsOptions },
  async run({ args, options, terminal }) {
    const [given = ''] = args;
    const open = await openAgents(options, terminal);
    try {
      const { agent, session } = await findSession(open.agents, given, options.agent);
      const items = await readTimeline(agent, session.sessionId);
      if (options.json) {
        terminal.print(JSON.stringify({ headId: session.headId, items }, null, 2));
        return;
      }
      if (items.length === 0)
        return terminal.note(`Session ${session.sessionId} has no snapshots yet.`);
      const texts = await snapshotTexts(agent, items);
      terminal.print(
        timelineTree({ snapshots: items, headId: session.headId, texts }, terminal.style),
      );
    } finally {
      await open.close();
    }
  },
});
