import { tool } from '@langchain/core/tools';
import { Command, interrupt } from '@langchain/langgraph';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { z } from 'zod';
import { checkpointer, model } from '../../given/langgraph.ts';

// #region task
const schema = z.object({ order: z.string(), amount: z.number() });
const refund = tool(
  (input) => {
    const { amount = input.amount } = interrupt({ name: 'refund', input });
    return `Refunded ${amount}`;
  },
  { name: 'refund', description: 'Refunds an order', schema },
);
// #endregion
const desk = createReactAgent({ llm: model, tools: [refund], checkpointer });
// #region task
const thread = { configurable: { thread_id: '1' } };
const answer = await desk.invoke(new Command({ resume: { amount: 20 } }), thread);
console.log(answer.messages.at(-1)?.text);
// #endregion
