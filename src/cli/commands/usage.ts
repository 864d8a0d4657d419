import { failedPrecondition } from '../../core/error.ts';
import { defined } from '../../core/json/json.ts';
import type { Cost } from '../../protocol/turn.ts';
import type { SpendGroup, SpendSum } from '../../store/contract/store.ts';
import { parseDay } from '../../store/rules/spend.ts';
import { jsonOption, oneOf, option } from '../command.ts';
import { storeCommand } from '../source/open-store.ts';
import { oneLine, table } from '../text/format.ts';

export const usage = storeCommand({
  name: 'usage',
  summary: 'Show tokens and costs by owner, agent, model or day',
  about:
    'Shows totals since the store was created, including failed turns and deleted sessions. Costs require the `price` option\nof the app.',
  examples: ['usage', 'usage --by owner --since 2026-11-01', 'usage --by day --owner ada --json'],
  options: {
    by: option('what', 'owner, agent, model or day [model]', {
      short: 'b',
      ...oneOf('owner, agent, model or day', ['owner', 'agent', 'model', 'day']),
    }),
    owner: option('id', 'Only the usage of this owner [all owners]'),
    agent: option('name', 'Only sessions of this agent', { short: 'a' }),
    since: option('day', 'Only the usage since this day, such as 2026-11-16'),
    ...jsonOption,
  },
  async run({ options: { by = 'model', owner, agent, since }, store }) {
    if (store.spend === undefined) {
      throw failedPrecondition(`The ${store.name} store does not record what was spent.`);
    }
    const sinceDay = since === undefined ? undefined : parseDay(since);
    const items = await store.spend.sums(by, defined({ owner, agent, sinceDay }));
    const json = { items };
    return items.length === 0
      ? { json, note: 'Nothing was spent.' }
      : { json, text: usageTable(by, items) };
  },
});

function usageTable(by: SpendGroup, items: readonly SpendSum[]): string {
  return table([
    [by.toUpperCase(), 'CALLS', 'INPUT', 'CACHED', 'WRITTEN', 'OUTPUT', 'COST'],
    ...items.map(({ key, calls, usage: used }) => [
      key === '' ? '-' : oneLine(key, 64),
      String(calls),
      String(used.inputTokens ?? 0),
      String(used.cachedInputTokens ?? 0),
      String(used.cacheWriteTokens ?? 0),
      String(used.outputTokens ?? 0),
      costText(used.cost),
    ]),
  ]);
}

function costText(cost: Cost | undefined): string {
  const amounts = Object.entries(cost ?? {}).map(
    ([currency, micros]) => `${(micros / 1e6).toFixed(6)} ${currency}`,
  );
  return amounts.join(', ') || '-';
}
