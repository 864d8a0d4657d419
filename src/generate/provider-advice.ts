/** A provider's package, and the names by which other libraries refer to the provider. */
interface Provider {
  readonly package: string;
  /** What the package exports to make a model. */
  readonly create: string;
  /** The first part of names such as `openai/gpt-5` and `googleai/gemini-2.5-flash`. */
  readonly prefixes: readonly string[];
  /** Model ids without such a part. */
  readonly ids?: RegExp;
}

const providers: readonly Provider[] = [
  {
    package: '@ai-sdk/openai',
    create: 'openai',
    prefixes: ['openai'],
    ids: /^(gpt-|chatgpt-|o[1-9](-|$))/,
  },
  { package: '@ai-sdk/anthropic', create: 'anthropic', prefixes: ['anthropic'], ids: /^claude-/ },
  {
    package: '@ai-sdk/google',
    create: 'google',
    prefixes: ['google', 'googleai', 'gemini'],
    ids: /^gemini-/,
  },
  {
    package: '@ai-sdk/google-vertex',
    create: 'vertex',
    prefixes: ['vertex', 'vertexai', 'google-vertex'],
  },
  { package: '@ai-sdk/mistral', create: 'mistral', prefixes: ['mistral'], ids: /^mistral-/ },
  { package: '@ai-sdk/xai', create: 'xai', prefixes: ['xai'], ids: /^grok-/ },
  { package: '@ai-sdk/deepseek', create: 'deepseek', prefixes: ['deepseek'], ids: /^deepseek-/ },
  { package: '@ai-sdk/groq', create: 'groq', prefixes: ['groq'] },
  { package: '@ai-sdk/cohere', create: 'cohere', prefixes: ['cohere'], ids: /^command-/ },
];

/** How to pass a model that is named as other libraries name it; `undefined` if the name does not look like a provider's model. */
export function providerAdvice(name: string): string | undefined {
  const [, prefix, rest] = /^([^/:]+)[/:](.+)$/.exec(name) ?? [];
  const known = providers.find(({ prefixes, ids }) =>
    prefix === undefined ? ids?.test(name) : prefixes.includes(prefix.toLowerCase()),
  );
  if (known !== undefined) {
    const { create, package: from } = known;
    return `To use a provider's model, pass the model instead of a name: ${create}('${rest ?? name}') from the package ${from}.`;
  }
  if (prefix === undefined) return undefined;
  return "To use a provider's model, pass the model instead of a name, such as openai('gpt-5') from the package @ai-sdk/openai.";
}
