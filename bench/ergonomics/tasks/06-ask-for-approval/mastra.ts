import { Mastra } from '@mastra/core';
import { Agent } from '@mastra/core/agent';
import { createTool } from '@mastra/core/tools';
import { z } from 'zod';
import { model, storage } from '../../given/mastra.ts';

// #region task
const refund = createTool({
  id: 'refund',
  description: 'Refunds an order',
  inputSchema: z.object({ order: z.string(), amount: z.number() }),
  requireApproval: true,
  execute: async ({ amount }) => `Refunded ${amount}`,
});
const desk = new Agent({
  id: 'desk',
  name: 'Desk',
  instructions: 'Help.',
  model,
  tools: { refund },
});
const mastra = new Mastra({ agents: { desk }, storage });
const asked = await desk.generate('Refund order 7');
console.log(asked.suspendPayload.toolName, asked.suspendPayload.args);

// #endregion

export { asked, desk, mastra };
