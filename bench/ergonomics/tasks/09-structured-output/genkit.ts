import { z } from 'genkit/beta';
import { ai } from '../../given/genkit.ts';

// #region task
const schema = z.object({ city: z.string(), days: z.number() });
const { output } = await ai.generate({ prompt: 'Three days in Oslo', output: { schema } });
console.log(output?.city, output?.days);
// #endregion
