import { ToolLoopAgent, tool } from 'ai';
import { z } from 'zod';
import { model } from '../../given/ai-sdk.ts';

// #region task
const note = tool({
  description: 'Notes a taste',
  inputSchema: z.object({ what: z.string() }),
  execute: ({ what }) => what,
});
const planner = new ToolLoopAgent({
  model,
  tools: { note },
  runtimeContext: { likes: [] as string[] },
  prepareStep: ({ steps, runtimeContext }) => {
    const noted = steps.at(-1)?.staticToolResults.map(({ output }) => output) ?? [];
    return { runtimeContext: { likes: [...runtimeContext.likes, ...noted] } };
  },
});
const answer = await planner.generate({ prompt: 'I like museums' });
console.log(answer.steps.at(-1)?.runtimeContext.likes);
// #endregion
