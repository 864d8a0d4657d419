import { type ToolRequestPart, z } from 'genkit/beta';
import { ai, store } from '../../given/genkit.ts';

const sessionId = 'session-1';
// #region task
const inputSchema = z.object({ order: z.string(), amount: z.number() });
const refund = ai.defineTool(
  { name: 'refund', description: 'Refunds an order', inputSchema },
  async ({ amount }, { interrupt, resumed }) => {
    if (!resumed) interrupt();
    return `Refunded ${typeof resumed === 'object' ? resumed.amount : amount}`;
  },
);
// #endregion
const desk = ai.defineAgent({ name: 'careful-desk', tools: [refund], store });
// #region task
const chat = await desk.loadChat({ sessionId });
const requests = chat.messages.at(-1)?.content.filter((part) => part.toolRequest) ?? [];
const restart = requests.map((part) => refund.restart(part as ToolRequestPart, { amount: 20 }));
const answer = await chat.resume({ restart });
console.log(answer.text);
// #endregion
