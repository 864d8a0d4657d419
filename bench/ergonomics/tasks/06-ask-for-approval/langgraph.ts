import { tool } from '@langchain/core/tools';
import { interrupt } from '@langchain/langgraph';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { z } from 'zod';
import { checkpointer, model } from '../../given/langgraph.ts';

// #region task
const refund = tool(
  (input) => {
    const { approved } = interrupt({ name: 'refund', input });
    return approved ? `Refunded ${input.amount}` : 'Declined';
  },
  {
    name: 'refund',
    description: 'Refunds an order',
    schema: z.object({ order: z.string(), amount: z.number() }),
  },
);
const desk = createReactAgent({ llm: model, tools: [refund], checkpointer });
const thread = { configurable: { thread_id: '1' } };
await desk.invoke({ messages: 'Refund order 7' }, thread);
const { tasks } = await desk.getState(thread);
for (const { value } of tasks.flatMap((task) => task.interrupts)) console.log(value);

// #endregion

export { desk, thread };
