import { toolApproval } from 'waymark';
import { z } from 'zod';
import { app } from '../../given/waymark.ts';

// #region task
const input = z.object({ order: z.string(), amount: z.number() });
const refund = app.defineTool(
  { name: 'refund', description: 'Refunds an order', input },
  ({ amount }) => `Refunded ${amount}`,
);
const desk = app.defineAgent({ name: 'desk', tools: [refund], use: [toolApproval(['refund'])] });
const asked = await desk.run('Refund order 7');
for (const { toolName, input } of asked.interrupts) console.log(toolName, input);

// #endregion

export { asked, desk };
