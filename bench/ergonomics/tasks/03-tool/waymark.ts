import { z } from 'zod';
import { app } from '../../given/waymark.ts';

// #region task
const weather = app.defineTool(
  { name: 'weather', description: 'Weather in a city', input: z.object({ city: z.string() }) },
  ({ city }) => `Sunny in ${city}`,
);
const forecaster = app.defineAgent({ name: 'forecaster', tools: [weather] });
const answer = await forecaster.run('How is Lisbon?');
console.log(answer.text);

// #endregion

export { forecaster, weather };
