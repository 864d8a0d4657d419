import { Agent } from '@mastra/core/agent';
import { createTool } from '@mastra/core/tools';
import { model } from '../../given/mastra.ts';

// #region task
const count = createTool({
  id: 'count',
  description: 'Counts the messages so far',
  execute: async (_, { agent }) => agent?.messages.length,
});
const counter = new Agent({
  id: 'counter',
  name: 'Counter',
  instructions: 'Help.',
  model,
  tools: { count },
});
const answer = await counter.generate('How long is this conversation?');
console.log(answer.text);
// #endregion
