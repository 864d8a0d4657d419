import { ToolLoopAgent, tool } from 'ai';
import { z } from 'zod';
import { model } from '../../given/ai-sdk.ts';

// #region task
const count = tool({
  description: 'Counts the messages so far',
  inputSchema: z.object({}),
  execute: (_, { messages }) => messages.length,
});
const counter = new ToolLoopAgent({ model, tools: { count } });
const answer = await counter.generate({ prompt: 'How long is this conversation?' });
console.log(answer.text);
// #endregion
