import { Agent } from '@mastra/core/agent';
import { createTool } from '@mastra/core/tools';
import { z } from 'zod';
import { model } from '../../given/mastra.ts';

// #region task
const weather = createTool({
  id: 'weather',
  description: 'Weather in a city',
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `Sunny in ${city}`,
});
const forecaster = new Agent({
  id: 'forecaster',
  name: 'Forecaster',
  instructions: 'Help.',
  model,
  tools: { weather },
});
const answer = await forecaster.generate('How is Lisbon?');
console.log(answer.text);

// #endregion

export { weather };
