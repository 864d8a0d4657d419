import type { Usage } from '../../../src/client/index.ts';
import { addUsage as add } from '../../../src/protocol/usage.ts';

export { totalTokens } from '../../../src/protocol/usage.ts';

/** The usage of several turns together. */
export function addUsage(usages: Iterable<Usage | undefined>): Usage {
  let sum: Usage = {};
  for (const usage of usages) sum = add(sum, usage);
  return sum;
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
