import { Agent, run, tool } from '@openai/agents';
import { z } from 'zod';

// #region task
const weather = tool({
  name: 'weather',
  description: 'Weather in a city',
  parameters: z.object({ city: z.string() }),
  execute: ({ city }) => `Sunny in ${city}`,
});
const forecaster = new Agent({ name: 'forecaster', tools: [weather] });
const answer = await run(forecaster, 'How is Lisbon?');
console.log(answer.finalOutput);

// #endregion

export { forecaster, weather };
