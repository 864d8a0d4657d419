import { z } from 'genkit/beta';
import { ai, store } from '../../given/genkit.ts';

// #region task
const inputSchema = z.object({ city: z.string() });
const weather = ai.defineTool(
  { name: 'weather', description: 'Weather in a city', inputSchema },
  async ({ city }) => `Sunny in ${city}`,
);
const forecaster = ai.defineAgent({ name: 'forecaster', tools: [weather], store });
const answer = await forecaster.chat().send('How is Lisbon?');
console.log(answer.text);

// #endregion

export { forecaster, weather };
