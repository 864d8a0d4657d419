import { failedPrecondition } from '../core/error.ts';
import { requireOptional } from '../core/platform.ts';
import type { Price } from '../generate/answer/price.ts';

/** `calcPrice` of `@pydantic/genai-prices`, as far as it is used. */
export type CalcPrice = (
  usage: {
    readonly input_tokens: number;
    readonly output_tokens: number;
    readonly cache_read_tokens: number;
    readonly cache_write_tokens: number;
  },
  modelId: string,
  options: { readonly providerId?: string },
) => { readonly total_price: number } | null;

/** The names of providers in the table, where they differ from those of OpenTelemetry. */
const providerIds: Readonly<Record<string, string>> = {
  'aws.bedrock': 'aws',
  'azure.ai.inference': 'azure',
  'azure.ai.openai': 'azure',
  'gcp.gemini': 'google',
  'gcp.gen_ai': 'google',
  'gcp.vertex_ai': 'google',
  mistral_ai: 'mistral',
  moonshot_ai: 'moonshotai',
  x_ai: 'x-ai',
};

/**
 * The list prices of the common providers in US dollars, from the package `@pydantic/genai-prices`. It works offline. Pass the
 * package's `calcPrice` where packages cannot be loaded by name, as in a bundle.
 *
 * @example
 * const app = waymark({ store, price: priceTable() });
 */
export function priceTable(calcPrice: CalcPrice = loadCalcPrice()): Price {
  return ({ id, provider = '' }, usage) => {
    const counts = {
      input_tokens: usage.inputTokens ?? 0,
      output_tokens: usage.outputTokens ?? 0,
      cache_read_tokens: usage.cachedInputTokens ?? 0,
      cache_write_tokens: usage.cacheWriteTokens ?? 0,
    };
    const providerId = providerIds[provider] ?? provider;
    const found =
      calcPrice(counts, id, providerId === '' ? {} : { providerId }) ??
      // A gateway or a provider that the table does not know: the model may be known by its name.
      calcPrice(counts, id, {});
    return found ? { USD: Math.round(found.total_price * 1e6) } : undefined;
  };
}

function loadCalcPrice(): CalcPrice {
  const loaded = requireOptional('@pydantic/genai-prices') as
    | { readonly calcPrice: CalcPrice }
    | undefined;
  if (loaded !== undefined) return loaded.calcPrice;
  throw failedPrecondition(
    'priceTable() needs the package "@pydantic/genai-prices". Install it: npm install @pydantic/genai-prices',
  );
}
