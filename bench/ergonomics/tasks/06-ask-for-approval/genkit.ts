import { z } from 'genkit/beta';
import { ai, store } from '../../given/genkit.ts';

// #region task
const inputSchema = z.object({ order: z.string(), amount: z.number() });
const refund = ai.defineTool(
  { name: 'refund', description: 'Refunds an order', inputSchema },
  async ({ amount }, { interrupt, resumed }) => {
    if (!resumed) interrupt();
    return `Refunded ${amount}`;
  },
);
const desk = ai.defineAgent({ name: 'desk', tools: [refund], store });
const chat = desk.chat();
const asked = await chat.send('Refund order 7');
for (const { name, input } of asked.interrupts) console.log(name, input);

// #endregion

export { asked, chat, desk };
