import { z } from 'zod';
import { guide } from '../01-text-answer/mastra.ts';

// #region task
const schema = z.object({ city: z.string(), days: z.number() });
const { object } = await guide.generate('Three days in Oslo', { structuredOutput: { schema } });
console.log(object.city, object.days);
// #endregion
