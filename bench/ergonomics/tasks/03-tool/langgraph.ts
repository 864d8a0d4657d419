import { tool } from '@langchain/core/tools';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { z } from 'zod';
import { model } from '../../given/langgraph.ts';

// #region task
const weather = tool(({ city }) => `Sunny in ${city}`, {
  name: 'weather',
  description: 'Weather in a city',
  schema: z.object({ city: z.string() }),
});
const forecaster = createReactAgent({ llm: model, tools: [weather] });
const answer = await forecaster.invoke({ messages: 'How is Lisbon?' });
console.log(answer.messages.at(-1)?.text);

// #endregion

export { weather };
