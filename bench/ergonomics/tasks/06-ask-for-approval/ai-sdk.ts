import { type ModelMessage, ToolLoopAgent, tool } from 'ai';
import { z } from 'zod';
import { model } from '../../given/ai-sdk.ts';

// #region task
const refund = tool({
  description: 'Refunds an order',
  inputSchema: z.object({ order: z.string(), amount: z.number() }),
  execute: ({ amount }) => `Refunded ${amount}`,
});
const desk = new ToolLoopAgent({
  model,
  tools: { refund },
  toolApproval: { refund: 'user-approval' },
});
const messages: ModelMessage[] = [{ role: 'user', content: 'Refund order 7' }];
const asked = await desk.generate({ messages });
for (const part of asked.content) {
  if (part.type === 'tool-approval-request') {
    console.log(part.toolCall.toolName, part.toolCall.input);
  }
}

// #endregion

export { asked, desk, messages };
