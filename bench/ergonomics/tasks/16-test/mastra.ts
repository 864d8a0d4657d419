import { Agent } from '@mastra/core/agent';
import { MastraLanguageModelV2Mock } from '@mastra/core/test-utils/llm-mock';
import { expect, test } from 'vitest';
import { weather } from '../03-tool/mastra.ts';

// #region task
const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };

test('looks the weather up', async () => {
  const model = new MastraLanguageModelV2Mock({
    doGenerate: [
      {
        content: [
          {
            type: 'tool-call',
            toolCallId: 'call-1',
            toolName: 'weather',
            input: '{"city":"Lisbon"}',
          },
        ],
        finishReason: 'tool-calls',
        usage,
        warnings: [],
      },
      {
        content: [{ type: 'text', text: 'Take a hat.' }],
        finishReason: 'stop',
        usage,
        warnings: [],
      },
    ],
  });
  const forecaster = new Agent({
    id: 'tested',
    name: 'Tested',
    instructions: 'Help.',
    model,
    tools: { weather },
  });
  const answer = await forecaster.generate('How is Lisbon?');
  expect(answer.text).toBe('Take a hat.');
  expect(model.doGenerateCalls).toHaveLength(2);
});
// #endregion
