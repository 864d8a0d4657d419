/** What AI SDK providers call themselves, up to the first dot or dash where that is enough, and the conventional names. */
const names: readonly (readonly [start: string, name: string])[] = [
  ['google.vertex', 'gcp.vertex_ai'],
  ['googlevertex', 'gcp.vertex_ai'],
  ['vertex', 'gcp.vertex_ai'],
  ['google', 'gcp.gemini'],
  ['amazon-bedrock', 'aws.bedrock'],
  ['bedrock', 'aws.bedrock'],
  ['azure', 'azure.ai.openai'],
  ['mistral', 'mistral_ai'],
  ['xai', 'x_ai'],
  ['moonshotai', 'moonshot_ai'],
  ['watsonx', 'ibm.watsonx.ai'],
];

/** The names that the conventions of OpenTelemetry list and that contain a dot or an underscore. */
const wellKnown = new Set([
  'aws.bedrock',
  'azure.ai.inference',
  'azure.ai.openai',
  'gcp.gemini',
  'gcp.gen_ai',
  'gcp.vertex_ai',
  'ibm.watsonx.ai',
  'mistral_ai',
  'moonshot_ai',
  'x_ai',
]);

/**
 * The value of `gen_ai.provider.name` for a provider: `openai.responses` is `openai`, `google.generative-ai` is `gcp.gemini`.
 * An unknown one is named by its part before the first dot.
 */
export function providerName(provider: string): string {
  if (wellKnown.has(provider)) return provider;
  const found = names.find(([start]) => provider.startsWith(start));
  return found?.[1] ?? provider.split('.')[0] ?? provider;
}
