import * as v from 'valibot';
import { failedPrecondition, hasStatus } from '../../core/error.ts';
import { sha256 } from '../../core/json/hash.ts';
import { defined, type Json } from '../../core/json/json.ts';
import { parseShape } from '../../protocol/parse.ts';
import type { MemoryExport, MemoryScope, Scope } from '../../store/contract/store.ts';
import type { Agent } from '../contract/agent.ts';
import type { MemoryDefinition, MemoryExtractor, MemoryOptions } from '../contract/memory.ts';
import { parsedEntry } from '../memory/definition.ts';
import { indexOf } from '../memory/scope-index.ts';
import { MemoryView, newestFirst } from '../memory/view.ts';
import type { AgentEnv } from './common-spec.ts';
import { createCustomAgent } from './custom-agent.ts';

/** Entries that one turn gives at most, and known ones that `extract` gets. */
const maxExtracted = 100;
const maxKnown = 100;

const turnShape = v.object({
  agent: v.string(),
  sessionId: v.string(),
  snapshotId: v.string(),
  from: v.number(),
  scope: v.string(),
  scopeOwner: v.optional(v.string()),
  owner: v.optional(v.string()),
});

type Extract = NonNullable<MemoryOptions['extract']>;

/** Creates the agent whose runs extract entries of a memory. It is no agent of the app: clients cannot reach it. */
export function createExtractor(
  definition: MemoryDefinition,
  extract: Extract,
  { env, add }: { readonly env: AgentEnv; readonly add: (agent: Agent) => void },
): MemoryExtractor {
  const { name } = definition;
  const agent = createCustomAgent(
    { name: `waymark.memory.${name}`, title: false },
    async (session) => {
      await session.run(async ({ message }, { signal }) => {
        const [part] = message?.content ?? [];
        const turn = parseShape(turnShape, part && 'data' in part && part.data, 'turn');
        await extractFrom(turn, { definition, extract, env, signal });
      });
    },
    env,
  );
  if (!agent.metadata.detachable) {
    throw failedPrecondition(
      `Memory "${name}" extracts entries in the background. Give the app a store that can run turns in the background.`,
    );
  }
  add(agent);
  return {
    async start(turn, owner) {
      try {
        // Of each turn once.
        const run = { sessionId: turn.snapshotId, ifHead: null, ...defined({ owner }) };
        const data = defined({ ...turn, owner }) as unknown as Json;
        await agent.start({ role: 'user', content: [{ data }] }, run);
      } catch (error) {
        if (!hasStatus(error, 'ABORTED')) throw error;
      }
    },
  };
}

async function extractFrom(
  { agent, sessionId, snapshotId, from, owner, ...turn }: v.InferOutput<typeof turnShape>,
  {
    definition,
    extract,
    env: { host, store },
    signal,
  }: {
    readonly definition: MemoryDefinition;
    readonly extract: Extract;
    readonly env: AgentEnv;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { support, vectors } = definition;
  const memory: MemoryScope = { key: turn.scope, ...defined({ owner: turn.scopeOwner }) };
  const scope: Scope = { agent, ...defined({ owner }) };
  const [note, place, snapshot] = await Promise.all([
    support.note(owner, snapshotId),
    support.session(scope, sessionId),
    store?.getSnapshot(scope, { snapshotId }),
  ]);
  const reserved = note?.path.at(-1);
  const { family, lane } = place;
  // The session or the snapshot was deleted meanwhile.
  if (family === undefined || lane === undefined || reserved?.[0] !== lane) return;
  const messages = snapshot?.state?.messages?.slice(from) ?? [];
  if (messages.length === 0) return;
  const index = await indexOf(support, memory);
  const view = new MemoryView(support, index, { path: note?.path ?? [], family });
  const known = (await view.entries(newestFirst(index), maxKnown)).map(({ version }) => ({
    id: version.entry,
    value: version.value as Json,
  }));
  const found = await extract({ messages, known, owner, signal });
  const versions: MemoryExport['versions'][number][] = [];
  for (const [at, each] of [...found].slice(0, maxExtracted).entries()) {
    // The same in each attempt.
    const id = sha256(`${snapshotId} ${at}`).slice(0, 32);
    if (index.version(id) !== undefined) continue;
    try {
      const value = await parsedEntry(each, definition);
      const { length } = messages;
      const source = { snapshotId, seq: reserved[2], message: from + length - 1 };
      const createdAt = host.clock.now();
      versions.push({ scope: memory.key, id, entry: id, value, createdAt, ...source });
    } catch (error) {
      // The others are kept.
      host.report(error, { phase: 'hook', agent, sessionId, runId: snapshotId });
    }
  }
  signal.throwIfAborted();
  if (versions.length === 0) return;
  await support.importSession(scope, sessionId, { family, lane, versions, notes: [] });
  // Deleted while the entries were written.
  if ((await support.session(scope, sessionId)).headId === undefined) {
    await support.remove(
      memory,
      versions.map(({ entry }) => entry),
    );
    return;
  }
  vectors?.embedLater({ support, scope: memory });
}
