import type { Message } from '../protocol/message.ts';
import type { Cost, Usage } from '../protocol/turn.ts';
import type { Model, ModelRequest } from './model.ts';
import { pricedUsage } from './price.ts';

/** What a model call may use and cost. */
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
  const known = sizes.get(message);
  if (known !== undefined) return known;
  const { role, content } = message;
  const text = content.filter((part) => !('media' in part || 'resource' in part));
  const files = text.flatMap((part) =>
    'toolResponse' in part ? (part.toolResponse.content ?? []) : [],
  );
  const media = content.length - text.length + files.length;
  const size = { tokens: tokensIn({ role, text }), media };
  sizes.set(message, size);
  return size;
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
