import type { AgentMemory } from '../../api/agent-memory.ts';
import { snapshotIdOf } from '../../api/turn-values.ts';
import { failedPrecondition, WaymarkError } from '../../core/error.ts';
import { defined, type Json, jsonEqual } from '../../core/json/json.ts';
import { checkId, scopeOf } from '../../protocol/ids.ts';
import type { MemoryEntry, MemoryVersionInfo } from '../../protocol/memory.ts';
import type { Message } from '../../protocol/message.ts';
import { notFound } from '../../store/rules/errors.ts';
import type { CallOptions } from '../contract/agent.ts';
import type { Memory } from '../contract/memory.ts';
import type { AgentSpec } from '../contract/spec.ts';
import { mayWrite, memoryBehind, scopeFor } from '../memory/definition.ts';
import { indexOf } from '../memory/scope-index.ts';
import { transformState } from '../persistence/transform.ts';
import { toEntry } from './memory.ts';

/** The memory of an agent, for its callers. */
export function memoryOperations(spec: AgentSpec): AgentMemory<CallOptions> {
  const { name } = spec;
  const whose = ({ owner, context = {} }: CallOptions = {}) =>
    defined({ owner, agent: name, context });
  const use = (): Memory => {
    const found = spec.memory && memoryBehind(spec.memory);
    if (found !== undefined) return found;
    throw failedPrecondition(
      `Agent "${name}" has no memory. Give it one: \`memory: app.defineMemory({ … })\`.`,
    );
  };
  const useToWrite = (options: CallOptions | undefined): Memory => {
    const memory = use();
    if (spec.memory !== undefined && mayWrite(spec.memory, whose(options))) return memory;
    throw new WaymarkError(
      'PERMISSION_DENIED',
      `This caller may only read memory "${memory.name}". The option \`canWrite\` of the memory decides that.`,
    );
  };
  /** Values leave as results of the tool `recall` do. */
  const shown = <Version extends MemoryVersionInfo>(version: Version): Version => {
    if (spec.transform.state === undefined || version.value === undefined) return version;
    const toolResponse = { name: 'recall', output: version.value as Json };
    const message: Message = { role: 'tool', content: [{ toolResponse }] };
    const part = transformState(spec.transform, { messages: [message] })?.messages?.[0]?.content[0];
    const value = part && 'toolResponse' in part ? part.toolResponse.output : undefined;
    return { ...version, value: value ?? null };
  };
  /** A search must not tell what a transform hides. */
  const isUnchanged = (entry: MemoryEntry): boolean =>
    jsonEqual(shown(entry).value as Json, entry.value as Json);
  return {
    async list({ query, asOf, limit, cursor, ...options } = {}) {
      const where = { ...whose(options), ...defined({ asOf, limit }) };
      if (query !== undefined) {
        return { items: (await use().search(query, where)).filter(isUnchanged) };
      }
      const { items, ...page } = await use().list({ ...where, ...defined({ cursor }) });
      return { ...page, items: items.map(shown) };
    },
    history: async (id, options) => (await use().history(id, whose(options))).map(shown),
    add: async (value, options) => shown(await useToWrite(options).add(value, whose(options))),
    update: async (id, value, options) =>
      shown(await useToWrite(options).update(id, value, whose(options))),
    forget: async (id, options) => await useToWrite(options).forget(id, whose(options)),
    async ofTurn(ref, options) {
      const snapshotId = snapshotIdOf(ref);
      checkId(snapshotId, 'a snapshot id');
      const { memory, store } = spec;
      const user = whose(options);
      const scope = scopeOf(spec, user.owner);
      // Without a memory as well, other owners do not learn which snapshots there are.
      if (memory === undefined && !(await store?.getSnapshot(scope, { snapshotId }))) {
        throw notFound('snapshot', snapshotId);
      }
      use();
      const note = await store?.memory?.note(user.owner, snapshotId);
      if (note === undefined || memory === undefined) throw notFound('snapshot', snapshotId);
      const index = await indexOf(memory.support, scopeFor(memory, user));
      const given = note.given.flatMap((id) => index.version(id) ?? []);
      const learned = index.versions.filter(({ source }) => source?.snapshotId === snapshotId);
      return {
        given: given.map((version) => shown(toEntry(version, user))),
        deleted: note.given.length - given.length,
        learned: learned.map((version) => shown(toEntry(version, user))),
      };
    },
  };
}
