import { invalid } from '../../core/error.ts';
import { getOrMake } from '../../core/get-or-make.ts';
import type { SpanAttributes } from '../../core/trace.ts';
import { attributes, genAi } from '../../core/trace-names.ts';
import type { Message } from '../../protocol/message.ts';
import type { Cost, Usage } from '../../protocol/turn.ts';
import type { Model, ModelRequest } from '../model.ts';

/** The model of a call that is to be priced. */
interface PricedModel {
  /** Its name in the app, such as `openai.responses/gpt-5`. */
  readonly name: string;
  /** The provider's own name of it, such as `gpt-5`. */
  readonly id: string;
  /** The provider by its name in OpenTelemetry's conventions, such as `openai` or `gcp.gemini`; `undefined` if unknown. */
  readonly provider: string | undefined;
}

/**
 * The cost of a model call, in integer micro-units by currency: `{ USD: 1500 }` is $0.0015. `undefined`: there is no price
 * for the model.
 */
export type Price = (model: PricedModel, usage: Usage) => Cost | undefined;

export function withPrice(model: Model, price: Price | undefined): Model {
  if (price === undefined || model.price !== undefined) return model;
  const priced = { name: model.name, ...tracedModel(model) };
  return { ...model, price: (usage) => price(priced, usage) };
}

/** The provider's name of a model, and the provider, as traces and prices have them. */
export function tracedModel({ name, modelId: id = name, provider }: Model): {
  readonly id: string;
  readonly provider: string | undefined;
} {
  return { id, provider: provider === undefined ? undefined : providerName(provider) };
}

/** The usage of model calls, as traces have it. */
export function tracedUsage(usage: Usage = {}): SpanAttributes {
  return {
    [genAi.inputTokens]: usage.inputTokens,
    [genAi.outputTokens]: usage.outputTokens,
    [genAi.cacheReadTokens]: usage.cachedInputTokens,
    [genAi.cacheWriteTokens]: usage.cacheWriteTokens,
    [genAi.cacheCreationTokens]: usage.cacheWriteTokens,
    [genAi.reasoningTokens]: usage.reasoningTokens,
    [attributes.expectedCachedTokens]: usage.expectedCachedTokens,
  };
}

/** The usage of a call with its cost, if the model has a price. A price that is not an amount of money is an error. */
export function pricedUsage({ name, price }: Model, usage: Usage | undefined): Usage | undefined {
  // A model that says what its call has cost knows it best.
  if (usage === undefined || usage.cost !== undefined || price === undefined) return usage;
  const cost = price(usage);
  if (cost === undefined) return usage;
  checkCost(cost, `The result of \`price\` for model "${name}"`);
  return { ...usage, cost };
}

/** Rejects a cost that is not an amount of money; `what` names it at the start of the message. */
export function checkCost(cost: Cost, what: string): void {
  const amounts: readonly unknown[] =
    typeof cost === 'object' && cost !== null ? Object.values(cost) : [undefined];
  if (amounts.every((micros) => Number.isSafeInteger(micros) && Number(micros) >= 0)) return;
  throw invalid(
    `${what} is not an amount of money. Pass integer micro-units by currency, such as { USD: 1500 } for $0.0015.`,
  );
}

/** Providers cache no shorter beginning of a prompt. */
const leastCached = 1_024;

/**
 * The usage of a call with the tokens that the provider's cache can have: all before the last answer was sent by an earlier call.
 * Only where the provider reports what its cache had.
 */
export function withExpectedCache(
  usage: Usage | undefined,
  { messages, tools, output }: ModelRequest,
): Usage | undefined {
  const { inputTokens, cachedInputTokens, cacheWriteTokens } = usage ?? {};
  const isReported = cachedInputTokens !== undefined || cacheWriteTokens !== undefined;
  if (usage === undefined || inputTokens === undefined || !isReported) return usage;
  const last = messages.findLastIndex(({ role }) => role === 'model');
  if (inputTokens < leastCached || last === -1) return { ...usage, expectedCachedTokens: 0 };
  const before = tokensIn({ tools, output }) + tokensOf(messages.slice(0, last));
  const all = before + tokensOf(messages.slice(last));
  const expected = Math.floor((inputTokens * before) / all);
  return { ...usage, expectedCachedTokens: expected < leastCached ? 0 : expected };
}

function tokensOf(messages: readonly Message[]): number {
  return messages.reduce((sum, message) => sum + sizeOf(message).tokens, 0);
}

/** The tokens and cost that a model call may reach. */
export interface CallBound {
  readonly tokens: number;
  readonly cost: Cost;
  /** Whether the call cannot use more. If not, it is a guess. */
  readonly isKnown: boolean;
}

/** Output tokens that are assumed for a request without `maxOutputTokens`. */
const assumedOutput = 4_096;
/** Tokens that are assumed for an image or another file, whose real number depends on the provider. */
const assumedMedia = 2_000;
/** Tokens that providers add for instructions about tools. */
const toolInstructions = 1_000;
/** Text in any language has more bytes per token; only long numbers and random strings have fewer. */
const bytesPerToken = 2;

/** The most that a call can use, from the size of its request and `maxOutputTokens`. */
export function callBound(model: Model, request: ModelRequest): CallBound {
  const { messages, tools, output, config } = request;
  const { maxOutputTokens } = config ?? {};
  let inputTokens = tools.length === 0 ? 0 : toolInstructions + tokensIn({ tools, output });
  let isKnown = maxOutputTokens !== undefined && tools.every(({ provider }) => !provider);
  for (const message of messages) {
    const { tokens, media } = sizeOf(message);
    inputTokens += tokens + media * assumedMedia;
    isKnown &&= media === 0;
  }
  const outputTokens = maxOutputTokens ?? assumedOutput;
  const tokens = inputTokens + outputTokens;
  const usage = { inputTokens, outputTokens, totalTokens: tokens };
  // Writing to a provider's cache costs more than reading, and reasoning may cost more than text.
  const worst = { ...usage, cacheWriteTokens: inputTokens, reasoningTokens: outputTokens };
  return { tokens, cost: dearest(model, usage, worst), isKnown };
}

interface Size {
  readonly tokens: number;
  /** Parts whose number of tokens does not follow from their length. */
  readonly media: number;
}

// Messages are immutable, so each is counted once.
const sizes = new WeakMap<Message, Size>();

function sizeOf(message: Message): Size {
  return getOrMake(sizes, message, () => {
    const { role, content } = message;
    const text = content.filter((part) => !('media' in part || 'resource' in part));
    const files = text.flatMap((part) =>
      'toolResponse' in part ? (part.toolResponse.content ?? []) : [],
    );
    const media = content.length - text.length + files.length;
    return { tokens: tokensIn({ role, text }), media };
  });
}

const encoder = new TextEncoder();

function tokensIn(value: unknown): number {
  return Math.ceil(encoder.encode(JSON.stringify(value)).length / bytesPerToken);
}

function dearest(model: Model, ...usages: readonly Usage[]): Cost {
  const cost: Record<string, number> = {};
  for (const usage of usages) {
    for (const [currency, micros] of Object.entries(pricedUsage(model, usage)?.cost ?? {})) {
      cost[currency] = Math.max(cost[currency] ?? 0, micros);
    }
  }
  return cost;
}

/** The names of AI SDK providers, up to the first dot or dash where that is enough, with the conventional names. */
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
function providerName(provider: string): string {
  if (wellKnown.has(provider)) return provider;
  const found = names.find(([start]) => provider.startsWith(start));
  return found?.[1] ?? provider.split('.')[0] ?? provider;
}
