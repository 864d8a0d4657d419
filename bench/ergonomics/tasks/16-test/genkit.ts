import { mockModel } from 'genkit/testing';
import { expect, test } from 'vitest';
import { ai, store } from '../../given/genkit.ts';
import { weather } from '../03-tool/genkit.ts';

// #region task
test('looks the weather up', async () => {
  const toolRequests = [{ name: 'weather', input: { city: 'Lisbon' } }];
  const model = mockModel(ai, { respond: [{ toolRequests }, 'Take a hat.'] });
  const forecaster = ai.defineAgent({ name: 'tested', model, tools: [weather], store });
  const answer = await forecaster.chat().send('How is Lisbon?');
  expect(answer.text).toBe('Take a hat.');
  expect(model.requests).toHaveLength(2);
});
// #endregion
