import type { Usage } from '../../protocol/turn.ts';
import type { StreamUsage, Tokens } from './types.ts';

/** The tokens of a model call, whatever version of the specification counted them. */
export function toUsage(usage: StreamUsage | undefined): Usage | undefined {
  if (!usage) return undefined;
  const inputTokens = totalOf(usage.inputTokens);
  const outputTokens = totalOf(usage.outputTokens);
  const totalTokens = usage.totalTokens ?? sum(inputTokens, outputTokens);
  const reasoningTokens = usage.reasoningTokens ?? breakdown(usage.outputTokens)?.reasoning;
  const cachedInputTokens = usage.cachedInputTokens ?? breakdown(usage.inputTokens)?.cacheRead;
  const cacheWriteTokens = breakdown(usage.inputTokens)?.cacheWrite;
  return {
    ...(inputTokens !== undefined && { inputTokens }),
    ...(outputTokens !== undefined && { outputTokens }),
    ...(totalTokens !== undefined && { totalTokens }),
    ...(reasoningTokens !== undefined && { reasoningTokens }),
    ...(cachedInputTokens !== undefined && { cachedInputTokens }),
    ...(cacheWriteTokens !== undefined && { cacheWriteTokens }),
  };
}

function totalOf(tokens: Tokens): number | undefined {
  return typeof tokens === 'number' ? tokens : tokens?.total;
}

function breakdown(tokens: Tokens): Exclude<Tokens, number> {
  return typeof tokens === 'number' ? undefined : tokens;
}

function sum(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined && b === undefined ? undefined : (a ?? 0) + (b ?? 0);
}
