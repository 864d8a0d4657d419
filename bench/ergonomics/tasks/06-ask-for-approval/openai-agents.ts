import { Agent, run, tool } from '@openai/agents';
import { z } from 'zod';

// #region task
const refund = tool({
  name: 'refund',
  description: 'Refunds an order',
  parameters: z.object({ order: z.string(), amount: z.number() }),
  needsApproval: true,
  execute: ({ amount }) => `Refunded ${amount}`,
});
const desk = new Agent({ name: 'desk', tools: [refund] });
const asked = await run(desk, 'Refund order 7');
for (const { name, arguments: input } of asked.interruptions) console.log(name, input);

// #endregion

export { asked, desk };
