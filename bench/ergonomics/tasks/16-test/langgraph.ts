import { AIMessage } from '@langchain/core/messages';
import { fakeModel } from '@langchain/core/testing';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { expect, test } from 'vitest';
import { weather } from '../03-tool/langgraph.ts';

// #region task
test('looks the weather up', async () => {
  const toolCall = { name: 'weather', args: { city: 'Lisbon' }, id: 'call-1' };
  const llm = fakeModel().respondWithTools([toolCall]).respond(new AIMessage('Take a hat.'));
  const forecaster = createReactAgent({ llm, tools: [weather] });
  const answer = await forecaster.invoke({ messages: 'How is Lisbon?' });
  expect(answer.messages.at(-1)?.text).toBe('Take a hat.');
  expect(llm.callCount).toBe(2);
});
// #endregion
