import { WaymarkError } from '../../core/error.ts';
import type { Cost, Usage } from '../../protocol/turn.ts';
import type { SpendGroup, SpendSum } from '../../store/contract/store.ts';
import { parseDay } from '../../store/rules/spend.ts';
import { defineCommand, jsonOption } from '../command.ts';
import { usageError } from '../parse-arguments.ts';
import { openStore, storeOptions } from '../source/open-store.ts';
import { oneLine } from '../text/safe.ts';
import { table } from '../text/table.ts';

const groups: readonly SpendGroup[] = ['owner', 'agent', 'model', 'day'];

/** `waymark usage` */
export const usage = defineCommand({
  name: 'usage',
  summary: 'Show tokens and costs by owner, agent, model or day',
  usage: '',
  about:
    'Shows totals since the store was created, including failed turns and deleted sessions. Costs require the `price` option\nof the app.',
  examples: ['usage', 'usage --by owner --since 2026-11-01', 'usage --by day --owner ada --json'],
  options: {
    by: { type: 'string', short: 'b', value: 'what', about: 'owner, agent, model or day [model]' },
    owner: { type: 'string', value: 'id', about: 'Only the usage of this owner [all owners]' },
    agent: { type: 'string', short: 'a', value: 'name', about: 'Only sessions of this agent' },
    since: {
      type: 'string',
      value: 'day',
      about: 'Only the usage since this day, such as 2026-11-16',
    },
    ...jsonOption,
    ...storeOptions,
  },
  async run({ options, terminal }) {
    const { by = 'model', owner, agent, since } = options;
    const group = groups.find((each) => each === by);
    if (group === undefined)
      throw usageError(`--by takes owner, agent, model or day, not "${by}".`);
    const open = await openStore(options, terminal);
    try {
      const { store } = open;
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
      if (options.json) return terminal.print(JSON.stringify({ items }, null, 2));
      if (items.length === 0) return terminal.note('Nothing was spent.');
      terminal.print(usageTable(group, items));
    } finally {
      await open.close();
    }
  },
});

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
