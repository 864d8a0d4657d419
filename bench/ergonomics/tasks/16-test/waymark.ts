import { expect, test } from 'vitest';
import { scriptedModel } from 'waymark/testing';
import { forecaster } from '../03-tool/waymark.ts';

// #region task
test('looks the weather up', async () => {
  const weather = { name: 'weather', input: { city: 'Lisbon' } };
  const model = scriptedModel([{ toolCalls: [weather] }, 'Take a hat.']);
  const answer = await forecaster.run('How is Lisbon?', { model });
  expect(answer.text).toBe('Take a hat.');
  expect(model.requests).toHaveLength(2);
});
// #endregion
