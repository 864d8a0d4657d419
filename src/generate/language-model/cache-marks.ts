import type { ModelConfig } from '../model.ts';
import type { LanguageModel, PromptMessage, ProviderOptions } from './types.ts';

/**
 * Marks where the prompt is the same the next time, for providers that cache only what is marked: behind the system prompt and,
 * once the conversation has an answer, before the newest message of the user and at its end. Marks of the app's own stand alone.
 */
export function withCacheMarks(
  prompt: readonly PromptMessage[],
  model: LanguageModel,
  cache: ModelConfig['cache'] = true,
): readonly PromptMessage[] {
  const mark = cache === false ? undefined : markFor(model, cache === '1h' ? { ttl: '1h' } : {});
  if (mark === undefined || prompt.some(hasMark)) return prompt;
  const begun = prompt.findIndex(({ role }) => role !== 'system');
  const places = new Set([(begun === -1 ? prompt.length : begun) - 1]);
  // A prompt that is sent once would only pay for being written.
  if (prompt.some(({ role }) => role === 'assistant')) {
    const asked = prompt.findLastIndex(({ role }) => role === 'user');
    places.add(asked - 1).add(prompt.length - 1);
  }
  const [provider = '', options] = Object.entries(mark)[0] ?? [];
  return prompt.map((message, at) => {
    if (!places.has(at)) return message;
    const own = message.providerOptions;
    return {
      ...message,
      providerOptions: { ...own, [provider]: { ...own?.[provider], ...options } },
    };
  });
}

/** The option that marks a message for a provider; `undefined` for one that takes no marks. */
function markFor(
  { provider, modelId }: LanguageModel,
  ttl: { readonly ttl?: '1h' },
): ProviderOptions | undefined {
  const cacheControl = { type: 'ephemeral', ...ttl };
  if (provider.includes('anthropic')) return { anthropic: { cacheControl } };
  const isClaude = /anthropic|claude/i.test(modelId);
  if (provider.includes('bedrock')) {
    const isTaken = isClaude || /amazon\.nova/.test(modelId);
    return isTaken ? { bedrock: { cachePoint: { type: 'default', ...ttl } } } : undefined;
  }
  if (!isClaude) return undefined;
  if (provider.startsWith('openrouter')) return { openrouter: { cacheControl } };
  return provider === 'gateway' ? { anthropic: { cacheControl } } : undefined;
}

function hasMark({ content, providerOptions }: PromptMessage): boolean {
  const parts = typeof content === 'string' ? [] : content;
  return [{ providerOptions }, ...parts].some((each) =>
    Object.values(each.providerOptions ?? {}).some(
      (options) =>
        'cacheControl' in options || 'cache_control' in options || 'cachePoint' in options,
    ),
  );
}
