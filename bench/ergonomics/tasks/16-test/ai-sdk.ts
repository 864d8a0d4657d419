import { ToolLoopAgent } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { expect, test } from 'vitest';
import { weather } from '../03-tool/ai-sdk.ts';

// #region task
const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
};

test('looks the weather up', async () => {
  const model = new MockLanguageModelV4({
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
        finishReason: { unified: 'tool-calls', raw: undefined },
        usage,
        warnings: [],
      },
      {
        content: [{ type: 'text', text: 'Take a hat.' }],
        finishReason: { unified: 'stop', raw: undefined },
        usage,
        warnings: [],
      },
    ],
  });
  const forecaster = new ToolLoopAgent({ model, tools: { weather } });
  const answer = await forecaster.generate({ prompt: 'How is Lisbon?' });
  expect(answer.text).toBe('Take a hat.');
  expect(model.doGenerateCalls).toHaveLength(2);
});
// #endregion
