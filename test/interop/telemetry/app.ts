/** The process that the tests trace: a turn with a tool and a sub-agent, one that fails and one that is stopped. */
import { agentTool, memoryStore, model, waymark } from '../../../src/index.ts';
import { priceTable } from '../../../src/prices/index.ts';
import { type ScriptStep, scriptedModel } from '../../../src/testing/scripted-model.ts';

const usage = {
  inputTokens: 1000,
  outputTokens: 100,
  totalTokens: 1100,
  cachedInputTokens: 300,
  cacheWriteTokens: 200,
  reasoningTokens: 40,
};

/** A model as an AI SDK provider would name it. */
function named(provider: string, modelId: string, script: readonly ScriptStep[]) {
  return model({ name: `${provider}/${modelId}`, provider, modelId }, scriptedModel(script).run);
}

const app = waymark({
  store: memoryStore(),
  price: priceTable(),
  telemetry: { content: process.env.CONTENT === '1', userId: true },
});
const look = app.defineTool({ name: 'look', description: 'Looks.' }, () => 'seen');
const helper = app.defineAgent({
  name: 'helper',
  model: named('anthropic.messages', 'claude-sonnet-4-5', [{ text: 'helped', usage }]),
});
const chat = app.defineAgent({
  name: 'chat',
  description: 'Chats.',
  version: 'v7',
  model: named('openai.responses', 'gpt-5', [
    { toolCalls: [{ name: 'look', ref: 'r1' }], usage },
    { toolCalls: [{ name: 'helper', ref: 'r2', input: { message: 'go' } }], usage },
    { chunks: ['do', 'ne'], usage },
  ]),
  tools: [look, agentTool(helper)],
  config: { temperature: 0.5, topP: 0.9, maxOutputTokens: 100 },
});
const { sessionId, snapshotId } = await chat.run('the question', { owner: 'ann' });

const failing = app.defineAgent({
  name: 'failing',
  model: named('google.generative-ai', 'failing-model', [{ error: new Error('broken') }]),
});
await failing.run('x', { throwOnError: false });

const caller = new AbortController();
const stopped = app.defineAgent({
  name: 'stopped',
  model: model(
    { name: 'slow', provider: 'mistral.chat', modelId: 'stopped-model' },
    (_request, { signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
        caller.abort();
      }),
  ),
});
await stopped.run('x', { signal: caller.signal });

const costs: Record<string, number | undefined> = {};
for (const [provider, modelId] of [
  ['openai.responses', 'gpt-5'],
  ['anthropic.messages', 'claude-sonnet-4-5'],
  ['google.generative-ai', 'gemini-2.5-flash'],
  ['google.vertex.chat', 'gemini-2.5-pro'],
  ['amazon-bedrock', 'anthropic.claude-sonnet-4-5-20250929-v1:0'],
  ['azure.responses', 'gpt-4o'],
  ['mistral.chat', 'mistral-large-latest'],
  ['xai.chat', 'grok-4'],
  ['groq.chat', 'llama-3.3-70b-versatile'],
  ['deepseek.chat', 'deepseek-chat'],
] as const) {
  const each = app.defineAgent({
    name: `priced-${Object.keys(costs).length}`,
    model: named(provider, modelId, [{ text: 'ok', usage }]),
  });
  const { usage: used } = await each.run('x');
  costs[`${provider}/${modelId}`] = used?.cost?.USD;
}
await app.close();
console.log(JSON.stringify({ sessionId, snapshotId, costs }));
