import { Mastra } from '@mastra/core';
import { Agent } from '@mastra/core/agent';
import { createTool } from '@mastra/core/tools';
import { Memory } from '@mastra/memory';
import { z } from 'zod';
import { model, storage } from '../../given/mastra.ts';

const memory = new Memory({ storage });
const threadId = 'thread-1';
const resourceId = 'user-1';

const desk = new Agent({
  id: 'careful-desk',
  name: 'Desk',
  instructions: 'Help.',
  model,
  memory,
  tools: {
    // #region task
    refund: createTool({
      id: 'refund',
      description: 'Refunds an order',
      inputSchema: z.object({ order: z.string(), amount: z.number() }),
      suspendSchema: z.object({ amount: z.number() }),
      resumeSchema: z.object({ amount: z.number() }),
      execute: async ({ amount }, { agent }) => {
        if (!agent?.resumeData) return agent?.suspend({ amount });
        return `Refunded ${agent.resumeData.amount}`;
      },
    }),
    // #endregion
  },
});
export const mastra = new Mastra({ agents: { desk }, storage });
// #region task
const { runs } = await desk.listSuspendedRuns({ threadId, resourceId });
for (const { runId } of runs) {
  const answer = await desk.resumeGenerate({ amount: 20 }, { runId });
  console.log(answer.text);
}
// #endregion
