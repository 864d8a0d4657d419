import type { Usage } from '../protocol/turn.ts';

/** The sum of two counts; what neither knows stays unknown. */
export function addUsage(a: Usage, b: Usage | undefined): Usage {
  if (!b) return a;
  const sum: Usage = { ...a };
  for (const key of keys) {
    const value = b[key];
    if (value !== undefined) sum[key] = (sum[key] ?? 0) + value;
  }
  return sum;
}

const keys = [
  'inputTokens',
  'outputTokens',
  'totalTokens',
  'reasoningTokens',
  'cachedInputTokens',
] as const satisfies readonly (keyof Usage)[];

/** All tokens of a count, as far as they are known. */
export function totalTokens({ totalTokens: total, inputTokens, outputTokens }: Usage): number {
  return total ?? (inputTokens ?? 0) + (outputTokens ?? 0);
}
