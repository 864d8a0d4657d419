import { createMemory } from '../../agent/define/memory.ts';
import { failedPrecondition } from '../../core/error.ts';
import { createIds } from '../../core/id.ts';
import { defined } from '../../core/json/json.ts';
import { systemClock } from '../../core/time.ts';
import { jsonOption, number, oneOf, option } from '../command.ts';
import { checkCanConfirm, confirmDeletion, deletionOptions } from '../confirm-deletion.ts';
import { UsageError } from '../parse-arguments.ts';
import { storeCommand } from '../source/open-store.ts';
import { oneLine, table } from '../text/format.ts';

export const memory = storeCommand({
  name: 'memory',
  summary: 'Show what agents remember, with its sources, or delete an entry',
  usage: '<memory>',
  about:
    'Shows the visible entries of a memory, newest first, with the sessions that they came from. `--forget` deletes an entry\nwith all its versions permanently; the other options show entries.',
  examples: [
    'memory facts --owner ada',
    'memory facts --owner ada --search tea',
    'memory facts --owner ada --as-of 019b2f6e-…',
    'memory handbook --scope app --json',
    'memory facts --owner ada --forget 019b2f6e-… --yes',
  ],
  options: {
    owner: option('id', 'The owner of the entries; sources are shown to it only'),
    scope: option('scope', 'Whose entries the memory has: owner, agent or app [owner]', {
      ...oneOf('owner, agent or app', ['owner', 'agent', 'app']),
    }),
    agent: option('name', 'The agent, for --scope agent', { short: 'a' }),
    search: option('words', 'Only entries that have these words, best first', { short: 'q' }),
    'as-of': option('snapshot', 'What was known at this snapshot'),
    limit: number('count', 'At most this many entries [50]', { least: 1, short: 'n' }),
    forget: option('id', 'Deletes this entry with all its versions', { destructive: true }),
    ...deletionOptions,
    ...jsonOption,
  },
  check({ args: [name], options, terminal }) {
    if (name === undefined) throw new UsageError('Name a memory, as in: waymark memory facts');
    if (options.forget !== undefined) checkCanConfirm(options, terminal);
  },
  async run({ args: [name = ''], options, terminal, store }) {
    const { owner, scope = 'owner', agent, search, limit = 50, forget, 'as-of': asOf } = options;
    if (store.memory === undefined) {
      throw failedPrecondition(`The ${store.name} store has no memory.`);
    }
    // The schema of the entries is that of the app; what is stored fits it.
    const schema = { type: 'object' } as const;
    const env = { support: store.memory, clock: systemClock, newId: createIds(systemClock) };
    const found = createMemory({ name, schema, scope }, env);
    const where = defined({ owner, agent });
    if (forget !== undefined) {
      if (options['dry-run'] === true) return { receipt: { dryRun: true, id: forget } };
      await confirmDeletion(`Delete entry ${forget} permanently?`, options, terminal);
      const forgotten = await found.forget(forget, where);
      const text = forgotten ? 'Deleted the entry.' : 'There is no such visible entry.';
      return { receipt: { forgotten }, text };
    }
    const reading = { ...where, ...defined({ asOf }), limit };
    const items =
      search === undefined
        ? (await found.list(reading)).items
        : await found.search(search, reading);
    if (items.length === 0) return { json: { items }, note: 'Nothing is remembered.' };
    const rows = items.map(({ id, createdAt, source, value }) => [
      id,
      createdAt.slice(0, 16).replace('T', ' '),
      source === undefined ? '-' : `${source.agent}/${oneLine(source.sessionId, 40)}`,
      oneLine(JSON.stringify(value), 100),
    ]);
    return { json: { items }, text: table([['ID', 'SAVED', 'SOURCE', 'ENTRY'], ...rows]) };
  },
});
