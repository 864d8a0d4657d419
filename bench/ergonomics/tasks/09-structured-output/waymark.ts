import { z } from 'zod';
import { app } from '../../given/waymark.ts';

// #region task
const schema = z.object({ city: z.string(), days: z.number() });
const { output } = await app.generate({ prompt: 'Three days in Oslo', output: { schema } });
console.log(output?.city, output?.days);
// #endregion
