import { Agent, run } from '@openai/agents';
import { z } from 'zod';

// #region task
const outputType = z.object({ city: z.string(), days: z.number() });
const extractor = new Agent({ name: 'extractor', outputType });
const { finalOutput } = await run(extractor, 'Three days in Oslo');
console.log(finalOutput?.city, finalOutput?.days);
// #endregion
