import type { Usage } from '../../../src/client/index.ts';

/** All tokens of a turn or call. */
export function totalTokens({ totalTokens, inputTokens = 0, outputTokens = 0 }: Usage): number {
  return totalTokens ?? inputTokens + outputTokens;
}

/** The usage of several turns together. */
export function addUsage(usages: Iterable<Usage | undefined>): Usage {
  const sum = { inputTokens: 0, outputTokens: 0, totalTokens: 0 };
  for (const usage of usages) {
    if (!usage) continue;
    sum.inputTokens += usage.inputTokens ?? 0;
    sum.outputTokens += usage.outputTokens ?? 0;
    sum.totalTokens += totalTokens(usage);
  }
  return sum;
}
