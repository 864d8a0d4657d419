import { ToolLoopAgent, tool } from 'ai';
import { z } from 'zod';
import { model } from '../../given/ai-sdk.ts';

// #region task
const weather = tool({
  description: 'Weather in a city',
  inputSchema: z.object({ city: z.string() }),
  execute: ({ city }) => `Sunny in ${city}`,
});
const forecaster = new ToolLoopAgent({ model, tools: { weather } });
const answer = await forecaster.generate({ prompt: 'How is Lisbon?' });
console.log(answer.text);

// #endregion

export { weather };
