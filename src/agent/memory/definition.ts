import { failedPrecondition, invalid } from '../../core/error.ts';
import { type Json, toJson } from '../../core/json/json.ts';
import { parse } from '../../core/schema/schema.ts';
import { checkId } from '../../protocol/ids.ts';
import type { MemoryScope } from '../../store/contract/store.ts';
import { ownedScope } from '../../store/rules/memory.ts';
import type { Memory, MemoryDefinition, MemoryUser } from '../contract/memory.ts';

const maxKeyLength = 256;
/** Characters of an entry as JSON at most. */
const maxLength = 16_384;

/** The scope of a user; INVALID_ARGUMENT if the user does not say whose entries are meant. */
export function scopeFor({ name, scope }: MemoryDefinition, user: MemoryUser): MemoryScope {
  const { owner, agent, context } = user;
  const keyOf = (kind: string, key: string): string => JSON.stringify([name, kind, key]);
  switch (scope) {
    case 'owner':
      if (owner === undefined) throw noOwner(name);
      checkId(owner, 'an owner');
      return { key: ownedScope(name, owner), owner };
    case 'agent':
      if (agent === undefined) {
        throw invalid(`Memory "${name}" belongs to agents. Pass the name of one as \`agent\`.`);
      }
      checkId(agent, 'an agent name');
      return { key: keyOf('agent', agent) };
    case 'app':
      return { key: keyOf('app', '') };
    default: {
      const key: unknown = scope(context);
      if (typeof key === 'string' && key !== '' && key.length <= maxKeyLength) {
        return { key: keyOf('own', key) };
      }
      throw invalid(
        `The \`scope\` of memory "${name}" must return a text of 1 to ${maxKeyLength} characters.`,
      );
    }
  }
}

function noOwner(name: string): Error {
  return invalid(
    `Memory "${name}" belongs to owners, and this call has none. Pass \`owner\`, or let \`authorize\` return one.`,
  );
}

/** Whether turns of this user may write. Entries that several owners read are written only if `canWrite` says so. */
export function mayWrite({ scope, canWrite }: MemoryDefinition, user: MemoryUser): boolean {
  if (canWrite !== undefined) return canWrite(user.context, user) === true;
  return scope !== 'agent' && scope !== 'app';
}

/** The content of an entry, checked. */
export async function parsedEntry(
  value: unknown,
  { name, schema }: Pick<MemoryDefinition, 'name' | 'schema'>,
): Promise<Json> {
  const what = `An entry of memory "${name}"`;
  const parsed = toJson(await parse(schema, value, what), what);
  const { length } = JSON.stringify(parsed);
  if (length <= maxLength) return parsed;
  throw invalid(`${what} has ${length} characters as JSON, of at most ${maxLength}. Shorten it.`);
}

const definitions = new WeakMap<object, MemoryDefinition>();

const memories = new WeakMap<MemoryDefinition, Memory>();

export function keepDefinition(memory: Memory, definition: MemoryDefinition): void {
  definitions.set(memory, definition);
  memories.set(definition, memory);
}

/** The memory that has a definition. */
export function memoryBehind(definition: MemoryDefinition): Memory | undefined {
  return memories.get(definition);
}

/** The definition of a memory that `defineMemory` made. */
export function definitionOf(memory: object, agent: string): MemoryDefinition {
  const found = definitions.get(memory);
  if (found !== undefined) return found;
  throw failedPrecondition(
    `The \`memory\` of agent "${agent}" is not a memory. Create one with app.defineMemory().`,
  );
}
