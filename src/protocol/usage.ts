import type { Cost, Usage } from './turn.ts';

/** The usage of a session along the path to a snapshot; kept only where an agent limits it. */
export interface Totals {
  /** Number of tokens. */
  readonly tokens: number;
  /** Number of tool calls. */
  readonly toolCalls: number;
}

/** The sum of two counts; what neither knows stays unknown. */
export function addUsage(a: Usage, b: Usage | undefined): Usage {
  if (!b) return a;
  const sum: Usage = { ...a };
  for (const key of keys) {
    const value = b[key];
    if (value !== undefined) sum[key] = (sum[key] ?? 0) + value;
  }
  if (b.cost !== undefined) sum.cost = a.cost === undefined ? b.cost : addCost(a.cost, b.cost);
  return sum;
}

const keys = [
  'inputTokens',
  'outputTokens',
  'totalTokens',
  'reasoningTokens',
  'cachedInputTokens',
  'cacheWriteTokens',
  'expectedCachedTokens',
] as const satisfies readonly (keyof Usage)[];

export function addCost(a: Cost, b: Cost): Cost {
  const sum: Record<string, number> = { ...a };
  for (const [currency, micros] of Object.entries(b)) sum[currency] = (sum[currency] ?? 0) + micros;
  return sum;
}

/** All tokens of a count, as far as they are known. */
export function totalTokens({ totalTokens: total, inputTokens, outputTokens }: Usage): number {
  return total ?? (inputTokens ?? 0) + (outputTokens ?? 0);
}
