import { generateText, Output } from 'ai';
import { z } from 'zod';
import { model } from '../../given/ai-sdk.ts';

// #region task
const schema = z.object({ city: z.string(), days: z.number() });
const { output } = await generateText({
  model,
  output: Output.object({ schema }),
  prompt: 'Three days in Oslo',
});
console.log(output.city, output.days);
// #endregion
