import type { CallOptions } from '../../agent/contract/agent.ts';
import { WaymarkError } from '../../core/error.ts';
import { defined, type JsonObject } from '../../core/json/json.ts';
import { memoryWrite } from '../../protocol/memory.ts';
import { short } from '../http/answer.ts';
import { operation, page, text } from './operation.ts';

const body = { shape: memoryWrite, schema: 'MemoryWrite', what: 'an entry' } as const;
const answer = { description: 'The entry.', schema: 'MemoryEntry' } as const;

/** The options of a call, with the context that `canWrite` and a scope of your own get. */
function withContext<Options extends CallOptions>(
  options: Options,
  { context }: { readonly context?: JsonObject | undefined },
): Options & CallOptions {
  return { ...options, ...defined({ context }) };
}

/** Operations of the memory of an agent. */
export const memoryOperations = {
  listMemory: operation({
    summary:
      'The entries of the memory of the agent, newest first; with `query`, the best ones first.',
    query: {
      ...page,
      query: text('Only entries that fit these words.'),
      asOf: text('A snapshot: what was known there.'),
    },
    answer: { description: 'The entries.', schema: 'MemoryPage' },
    run: ({ agent, caller, options }) => agent.memory.list(withContext(options, caller)),
  }),
  memoryHistory: operation({
    summary: 'The versions of an entry, oldest first.',
    answer: { description: 'The versions.', schema: 'MemoryHistory' },
    run: async ({ agent, caller, c, options }) => ({
      items: await agent.memory.history(c.req.param('entry') ?? '', withContext(options, caller)),
    }),
  }),
  addMemory: operation({
    summary: 'Adds an entry.',
    body,
    answer,
    run: ({ agent, caller, body: { value }, options }) =>
      agent.memory.add(value, withContext(options, caller)),
  }),
  updateMemory: operation({
    summary: 'Replaces the content of an entry, as a new version.',
    body,
    answer,
    run: ({ agent, caller, c, body: { value }, options }) =>
      agent.memory.update(c.req.param('entry') ?? '', value, withContext(options, caller)),
  }),
  forgetMemory: operation({
    summary: 'Deletes an entry with all its versions.',
    answer: { status: 204, description: 'It is erased.' },
    async run({ agent, caller, c, options }) {
      const id = c.req.param('entry') ?? '';
      if (await agent.memory.forget(id, withContext(options, caller))) return undefined;
      throw new WaymarkError('NOT_FOUND', `There is no visible entry ${short(id)} in this memory.`);
    },
  }),
  memoryOfTurn: operation({
    summary: 'What the turn of a snapshot knew from memory, and what it has learned.',
    answer: { description: 'The entries.', schema: 'MemoryOfTurn' },
    run: ({ agent, caller, snapshotId, options }) =>
      agent.memory.ofTurn(snapshotId, withContext(options, caller)),
  }),
};
