import { Agent, type RunContext, run, tool } from '@openai/agents';
import { z } from 'zod';

// #region task
interface Trip {
  likes: string[];
}
const note = tool({
  name: 'note',
  description: 'Notes a taste',
  parameters: z.object({ what: z.string() }),
  execute: ({ what }, context?: RunContext<Trip>) => {
    context?.context.likes.push(what);
  },
});
const planner = new Agent<Trip>({ name: 'planner', tools: [note] });
const context: Trip = { likes: [] };
await run(planner, 'I like museums', { context });
console.log(context.likes);
// #endregion
