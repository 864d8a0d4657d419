import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { z } from 'zod';
import { model } from '../../given/langgraph.ts';

// #region task
const responseFormat = z.object({ city: z.string(), days: z.number() });
const extractor = createReactAgent({ llm: model, tools: [], responseFormat });
const { structuredResponse } = await extractor.invoke({ messages: 'Three days in Oslo' });
console.log(structuredResponse.city, structuredResponse.days);
// #endregion
