import type { Usage } from '../../../src/client/index.ts';
import { addUsage as add } from '../../../src/protocol/usage.ts';
import { count } from './format.ts';

export { totalTokens } from '../../../src/protocol/usage.ts';

/** The usage of several turns together. */
export function addUsage(usages: Iterable<Usage | undefined>): Usage {
  let sum: Usage = {};
  for (const usage of usages) sum = add(sum, usage);
  return sum;
}

/** Tokens of the input that the provider's cache had, and those that were expected: `900 of about 1,000 read · 50 written`. */
export function cacheText(usage: Usage): string | undefined {
  const { cachedInputTokens: read, expectedCachedTokens, cacheWriteTokens } = usage;
  const expected = expectedCachedTokens ? ` of about ${count(expectedCachedTokens)}` : '';
  const texts = [
    read === undefined ? '' : `${count(read)}${expected} read`,
    cacheWriteTokens ? `${count(cacheWriteTokens)} written` : '',
  ];
  return texts.filter((text) => text !== '').join(' · ') || undefined;
}

/** The cost of a turn or session: `$0.0123`; empty if it is not known. */
export function costText({ cost = {} }: Usage): string {
  return Object.entries(cost)
    .map(([currency, micros]) => money(currency, micros / 1e6))
    .join(' + ');
}

function money(currency: string, amount: number): string {
  const digits = { minimumFractionDigits: 2, maximumFractionDigits: 4 };
  try {
    return new Intl.NumberFormat(undefined, { style: 'currency', currency, ...digits }).format(
      amount,
    );
  } catch {
    // The app may count in something that is no currency.
    return `${amount} ${currency}`;
  }
}
