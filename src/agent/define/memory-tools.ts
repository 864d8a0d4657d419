import { toJsonSchema } from '../../core/schema/schema.ts';
import { type Tool, tool } from '../../generate/tool/tool.ts';
import type { Memory, MemoryDefinition } from '../contract/memory.ts';

/** Characters of a query that are searched for. */
const maxQuery = 1_000;

const queryInput = {
  type: 'object',
  properties: { query: { type: 'string', description: 'Words to look for.' } },
  required: ['query'],
} as const;
const idInput = {
  type: 'object',
  properties: { id: { type: 'string', description: 'The id of the entry.' } },
  required: ['id'],
} as const;

/** The tools of an agent with a memory. An agent that cannot write gets `recall` only. */
export function memoryTools(
  memory: Memory,
  definition: MemoryDefinition,
  isStored: boolean,
): readonly Tool[] {
  const { description = '', schema } = definition;
  const isShared = definition.scope === 'agent' || definition.scope === 'app';
  const recall = tool(
    {
      name: 'recall',
      effect: 'none',
      description: `Searches what was remembered in earlier conversations. ${description}`.trim(),
      input: queryInput,
    },
    async (input) => {
      const { query } = input as { readonly query: string };
      const found = await memory.search(query.slice(0, maxQuery));
      return found.map(({ id, value }) => ({ id, value }));
    },
  );
  if (!isStored || (isShared && definition.canWrite === undefined)) return [recall];
  const remember = tool(
    {
      name: 'remember',
      effect: 'none',
      description:
        `Remembers something that will be useful in later conversations. ${description}`.trim(),
      input: toJsonSchema(schema),
    },
    async (input) => ({ id: (await memory.add(input)).id }),
  );
  const forget = tool(
    {
      name: 'forget',
      effect: 'none',
      description: 'Forgets something that was remembered and is no longer true or wanted.',
      input: idInput,
    },
    async (input) => {
      const { id } = input as { readonly id: string };
      return { forgotten: await memory.forget(id) };
    },
  );
  return [remember, recall, forget] as readonly Tool[];
}
