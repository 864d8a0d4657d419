import { tool } from '@langchain/core/tools';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { z } from 'zod';
import { model } from '../../given/langgraph.ts';
import { guide } from '../01-text-answer/langgraph.ts';

// #region task
const guideTool = tool(
  async ({ message }, config) =>
    (await guide.invoke({ messages: message }, config)).messages.at(-1)?.text,
  { name: 'guide', description: 'Plans a trip', schema: z.object({ message: z.string() }) },
);
const editor = createReactAgent({ llm: model, tools: [guideTool] });
const answer = await editor.invoke({ messages: 'Ask the guide for two days in Faro' });
console.log(answer.messages.at(-1)?.text);
// #endregion
