import { Agent, MemorySession, type RunContext, run, tool } from '@openai/agents';
import { z } from 'zod';

// #region task
const count = tool({
  name: 'count',
  description: 'Counts the messages so far',
  parameters: z.object({}),
  execute: async (_, context?: RunContext<{ session: MemorySession }>) =>
    (await context?.context.session.getItems())?.length,
});
const counter = new Agent<{ session: MemorySession }>({ name: 'counter', tools: [count] });
const session = new MemorySession();
const options = { session, context: { session } };
const answer = await run(counter, 'How long is this conversation?', options);
console.log(answer.finalOutput);
// #endregion
