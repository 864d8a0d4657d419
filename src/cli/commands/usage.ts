import { WaymarkError } from '../../core/error.ts';
import type { Cost, Usage } from '../../protocol/turn.ts';
import type { SpendGroup, SpendSum } from '../../store/contract/store.ts';
import { parseDay } from '../../store/rules/spend.ts';
import { jsonOption, option } from '../command.ts';
import { usageError } from '../parse-arguments.ts';
import { storeCommand } from '../source/open-store.ts';
import { oneLine, table } from '../text/format.ts';

const groups: readonly SpendGroup[] = ['owner', 'agent', 'model', 'day'];

/** `waymark usage` */
export const usage = storeCommand({
  name: 'usage',
  summary: 'Show tokens and costs by owner, agent, model or day',
  about:
    'Shows totals since the store was created, including failed turns and deleted sessions. Costs require the `price` option\nof the app.',
  examples: ['usage', 'usage --by owner --since 2026-11-01', 'usage --by day --owner ada --json'],
  options: {
    by: option('what', 'owner, agent, model or day [model]', { short: 'b' }),
    owner: option('id', 'Only the usage of this owner [all owners]'),
    agent: option('name', 'Only sessions of this agent', { short: 'a' }),
    since: option('day', 'Only the usage since this day, such as 2026-11-16'),
    ...jsonOption,
  },
  check: ({ options }) => void groupOf(options.by),
  async run({ options: { by, owner, agent, since }, store }) {
    const group = groupOf(by);
    if (store.spend === undefined) {
      throw new WaymarkError(
        'FAILED_PRECONDITION',
        `The ${store.name} store does not record what was spent.`,
      );
    }
    const items = await store.spend.sums(group, {
      ...(owner !== undefined && { owner }),
      ...(agent !== undefined && { agent }),
      ...(since !== undefined && { sinceDay: parseDay(since) }),
    });
    const json = { items };
    return items.length === 0
      ? { json, note: 'Nothing was spent.' }
      : { json, text: usageTable(group, items) };
  },
});

function groupOf(by = 'model'): SpendGroup {
  const group = groups.find((each) => each === by);
  if (group !== undefined) return group;
  throw usageError(`--by takes owner, agent, model or day, not "${by}".`);
}

function usageTable(by: SpendGroup, items: readonly SpendSum[]): string {
  return table([
    [by.toUpperCase(), 'CALLS', 'INPUT', 'CACHED', 'OUTPUT', 'COST'],
    ...items.map(({ key, calls, usage: used }) => [
      key === '' ? '-' : oneLine(key, 64),
      String(calls),
      tokens(used, 'inputTokens'),
      tokens(used, 'cachedInputTokens'),
      tokens(used, 'outputTokens'),
      costText(used.cost),
    ]),
  ]);
}

function tokens(used: Usage, name: 'inputTokens' | 'cachedInputTokens' | 'outputTokens'): string {
  return String(used[name] ?? 0);
}

function costText(cost: Cost | undefined): string {
  const amounts = Object.entries(cost ?? {}).map(
    ([currency, micros]) => `${(micros / 1e6).toFixed(6)} ${currency}`,
  );
  return amounts.join(', ') || '-';
}
