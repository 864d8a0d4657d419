import { tool } from '@langchain/core/tools';
import { getCurrentTaskInput, type MessagesAnnotation } from '@langchain/langgraph';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { z } from 'zod';
import { model } from '../../given/langgraph.ts';

// #region task
const count = tool(() => getCurrentTaskInput<typeof MessagesAnnotation.State>().messages.length, {
  name: 'count',
  description: 'Counts the messages so far',
  schema: z.object({}),
});
const counter = createReactAgent({ llm: model, tools: [count] });
const answer = await counter.invoke({ messages: 'How long is this conversation?' });
console.log(answer.messages.at(-1)?.text);
// #endregion
