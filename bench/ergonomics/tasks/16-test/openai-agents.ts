import { run } from '@openai/agents';
import { assistantMessage, functionCall, ScriptedModel } from '@openai/agents/testing';
import { expect, test } from 'vitest';
import { forecaster } from '../03-tool/openai-agents.ts';

// #region task
test('looks the weather up', async () => {
  const weather = functionCall('weather', { city: 'Lisbon' }, { callId: 'call-1' });
  const model = new ScriptedModel([[weather], [assistantMessage('Take a hat.')]]);
  const answer = await run(forecaster.clone({ model }), 'How is Lisbon?');
  expect(answer.finalOutput).toBe('Take a hat.');
  expect(model.calls).toHaveLength(2);
});
// #endregion
