import { defineCommand, jsonOption } from '../command.ts';
import { findSession } from '../source/find-snapshot.ts';
import { agentOption, agentsOptions, openAgents } from '../source/open-agents.ts';
import { readTimeline } from '../source/read-timeline.ts';
import { snapshotTexts } from '../text/snapshot-texts.ts';
import { timelineTree } from '../text/timeline-tree.ts';

/** `waymark snapshots` */
export const snapshots = defineCommand({
  name: 'snapshots',
  summary: 'Draw the tree of a session',
  usage: '<session>',
  about:
    'Marks: ◉ head, ● on the way to it, ○ orphaned, ✗ failed, ▬ aborted, ◐ pending, ⚑ labelled.\nThe number is the turn.',
  examples: ['snapshots 019b2f6e-…', 'snapshots 019b2f6e-… --json'],
  options: { ...agentOption, ...jsonOption, ...agentsOptions },
  async run({ args, options, terminal }) {
    const [sessionId = ''] = args;
    const open = await openAgents(options, terminal);
    try {
      const { agent, session } = await findSession(open.agents, sessionId, options.agent);
      const items = await readTimeline(agent, sessionId);
      if (options.json) {
        terminal.print(JSON.stringify({ headId: session.headId, items }, null, 2));
        return;
      }
      if (items.length === 0) return terminal.note('This session has no snapshots.');
      const texts = await snapshotTexts(agent, items);
      terminal.print(
        timelineTree({ snapshots: items, headId: session.headId, texts }, terminal.style),
      );
    } finally {
      await open.close();
    }
  },
});
