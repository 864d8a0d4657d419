import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { model } from '../../given/langgraph.ts';

// #region task
const guide = createReactAgent({ llm: model, tools: [], prompt: 'You plan trips.' });
const answer = await guide.invoke({ messages: 'Two days in Lisbon' });
console.log(answer.messages.at(-1)?.text);

// #endregion

export { guide };
