import { snapshotIdOf } from '../../api/turn-values.ts';
import { failedPrecondition, invalid, WaymarkError } from '../../core/error.ts';
import type { Json } from '../../core/json/json.ts';
import { checkOptions, type OptionNames } from '../../core/options.ts';
import {
  type InferSchema,
  type InferSchemaInput,
  type Schema,
  toJsonSchema,
} from '../../core/schema/schema.ts';
import type { Clock } from '../../core/time.ts';
import { checkId } from '../../protocol/ids.ts';
import type {
  MemoryEntry,
  MemoryHit,
  MemoryOrigin,
  MemoryVersionInfo,
} from '../../protocol/memory.ts';
import type { Page } from '../../protocol/session.ts';
import { sessionKey } from '../../session/session.ts';
import type {
  ListOptions,
  MemoryScope,
  MemorySupport,
  MemoryVersion,
} from '../../store/contract/store.ts';
import { notFound } from '../../store/rules/errors.ts';
import { vectorScope } from '../../store/rules/memory.ts';
import { checkLimit, firstPage, parseCursor } from '../../store/rules/page.ts';
import { checkQuery } from '../../store/rules/session-filter.ts';
import type {
  Memory,
  MemoryDefinition,
  MemoryExtractor,
  MemoryOptions,
  MemoryReading,
  MemoryRetention,
  MemoryUser,
  MemoryWhere,
  RankedVersion,
} from '../contract/memory.ts';
import { keepDefinition, mayWrite, parsedEntry, scopeFor } from '../memory/definition.ts';
import { checkedEmbedder } from '../memory/embed.ts';
import { ranked } from '../memory/rank.ts';
import { indexOf, type ScopeIndex } from '../memory/scope-index.ts';
import { MemoryVectors } from '../memory/vectors.ts';
import { MemoryView, newestFirst, type SeenEntry, type Viewpoint } from '../memory/view.ts';
import { InvocationSession } from '../turn/invocation.ts';
import type { InvocationState } from '../turn/invocation-state.ts';
import { memoryOf } from '../turn/memory.ts';

const optionNames: OptionNames<MemoryOptions> = {
  name: true,
  schema: true,
  scope: ['text', 'function'],
  description: 'text',
  canWrite: 'function',
  embed: true,
  extract: 'function',
};

const whereNames: OptionNames<MemoryWhere> = { owner: true, agent: true, context: 'object' };
const readingNames = { ...whereNames, asOf: true } satisfies OptionNames<MemoryReading>;

/** The environment of a memory. */
export interface MemoryEnv {
  readonly support: MemorySupport;
  readonly clock: Clock;
  readonly newId: () => string;
  /** Aborts when the app closes. */
  readonly closing?: AbortSignal;
  /** Gets failures of work in the background. */
  readonly report?: (error: unknown) => void;
  /** Makes what extracts entries in the background. */
  readonly extractor?: (
    definition: MemoryDefinition,
    extract: NonNullable<MemoryOptions['extract']>,
  ) => MemoryExtractor;
}

/** Declares a memory. */
export function createMemory<S extends Schema>(
  options: MemoryOptions<S>,
  env: MemoryEnv,
): Memory<InferSchema<S>, InferSchemaInput<S>> {
  const definition = checkedDefinition(options, env);
  const made = new StoredMemory(definition, env);
  keepDefinition(made, definition);
  // The values of its entries are parsed by the schema that the types come from.
  return made as unknown as Memory<InferSchema<S>, InferSchemaInput<S>>;
}

function checkedDefinition(
  options: MemoryOptions,
  { support, clock, newId, closing, report = () => {}, extractor }: MemoryEnv,
): MemoryDefinition {
  const { name, schema, scope = 'owner', description, canWrite, embed, extract } = options;
  if (typeof name !== 'string' || !/^[\w.-]{1,64}$/.test(name)) {
    throw invalid(
      `"${String(name).slice(0, 64)}" cannot be the name of a memory: use letters, digits, ".", "_" and "-", at most 64.`,
    );
  }
  checkOptions(options, optionNames, `memory "${name}"`);
  if (typeof scope === 'string' && !['owner', 'agent', 'app'].includes(scope)) {
    throw invalid(
      `The \`scope\` of memory "${name}" must be 'owner', 'agent', 'app' or a function of the context.`,
    );
  }
  if (toJsonSchema(schema).type !== 'object') {
    throw invalid(
      `The \`schema\` of memory "${name}" must be an object, as in z.object({ text: z.string() }): models fill in its fields.`,
    );
  }
  const vectors =
    embed &&
    new MemoryVectors({ embedder: checkedEmbedder(embed, name), clock, newId, closing, report });
  const definition = { name, schema, scope, description, canWrite, support, vectors };
  const own: MemoryDefinition = { ...definition, extractor: undefined };
  return { ...own, extractor: extract && extractor?.(own, extract) };
}

class StoredMemory implements Memory<Json, unknown> {
  readonly name: string;
  readonly #definition: MemoryDefinition;
  readonly #env: MemoryEnv;

  constructor(definition: MemoryDefinition, env: MemoryEnv) {
    this.name = definition.name;
    this.#definition = definition;
    this.#env = env;
  }

  async search(
    query: string,
    { limit = 10, ...where }: MemoryReading & { readonly limit?: number } = {},
  ): Promise<readonly MemoryHit<Json>[]> {
    checkQuery(query);
    if (typeof query !== 'string') throw invalid('search() needs a query, a text.');
    checkLimit(limit);
    const { user, view, rank } = await this.#look(where);
    const found = await view.entries(await rank(query), limit);
    return found.map(({ version, score }) => ({ ...toEntry(version, user), score }));
  }

  async list({
    limit,
    cursor,
    ...where
  }: MemoryReading & ListOptions = {}): Promise<Page<MemoryEntry<Json>>> {
    const most = limit ?? 50;
    checkLimit(most);
    const after = parseCursor(cursor);
    const { user, view, all } = await this.#look(where);
    const keyOf = ({ version: { no, id } }: SeenEntry) => [-no, id] as const;
    const rest = function* () {
      for (const each of all()) {
        const [no, id] = keyOf(each);
        if (after === undefined || no > after[0] || (no === after[0] && id > after[1])) yield each;
      }
    };
    const page = firstPage(await view.entries(rest(), most + 1), keyOf, most);
    return { ...page, items: page.items.map(({ version }) => toEntry(version, user)) };
  }

  async history(
    id: string,
    where: MemoryReading = {},
  ): Promise<readonly MemoryVersionInfo<Json>[]> {
    checkId(id, 'the id of an entry');
    const { user, view } = await this.#look(where);
    return (await view.versions(id)).map((version) => toEntry(version, user));
  }

  async add(value: unknown, where: MemoryWhere = {}): Promise<MemoryEntry<Json>> {
    return await this.#write(undefined, await parsedEntry(value, this.#definition), where);
  }

  async update(id: string, value: unknown, where: MemoryWhere = {}): Promise<MemoryEntry<Json>> {
    const parsed = await parsedEntry(value, this.#definition);
    if ((await this.#current(id, where)) === undefined) throw noEntry(this.name, id);
    return await this.#write(id, parsed, where);
  }

  async forget(id: string, where: MemoryWhere = {}): Promise<boolean> {
    if ((await this.#current(id, where)) === undefined) return false;
    const { scope, turn } = this.#reader(where);
    if (turn === undefined) await this.#remove(scope, [id]);
    else await this.#write(id, undefined, where);
    return true;
  }

  async prune({ olderThan, keepLast, ...where }: MemoryRetention): Promise<number> {
    checkOptions({ olderThan, keepLast }, { olderThan: 'number', keepLast: 'number' }, 'prune()');
    if (olderThan === undefined && keepLast === undefined) {
      throw invalid(
        'prune() needs `olderThan` or `keepLast`: without them it would delete nothing.',
      );
    }
    const { index, scope } = await this.#look(where);
    const newest = new Map(index.versions.map(({ entry, createdAt }) => [entry, createdAt]));
    // In the order of their newest versions.
    const order = [...new Set(index.versions.toReversed().map(({ entry }) => entry))];
    const before = this.#env.clock.now() - (olderThan ?? Number.POSITIVE_INFINITY);
    const gone = order.filter(
      (entry, at) =>
        at >= (keepLast ?? Number.POSITIVE_INFINITY) || (newest.get(entry) ?? 0) < before,
    );
    for (let at = 0; at < gone.length; at += 500) {
      await this.#remove(scope, gone.slice(at, at + 500));
    }
    return gone.length;
  }

  /** Removes entries with their vectors, also where `embed` is no longer set. */
  async #remove(scope: MemoryScope, entries: readonly string[]): Promise<void> {
    const { support } = this.#env;
    await support.remove(scope, entries);
    await support.remove(vectorScope(scope), entries);
  }

  /** The visible version of an entry; `undefined` if there is none, or it was forgotten. */
  async #current(id: string, where: MemoryWhere): Promise<MemoryVersion | undefined> {
    checkId(id, 'the id of an entry');
    const { view } = await this.#look(where);
    const newest = (await view.versions(id)).at(-1);
    return newest?.value === undefined ? undefined : newest;
  }

  async #write(
    entry: string | undefined,
    value: Json | undefined,
    where: MemoryWhere,
  ): Promise<MemoryEntry<Json>> {
    const { scope, user, turn } = this.#reader(where);
    if (turn !== undefined) {
      if (!mayWrite(this.#definition, user)) throw mayNotWrite(this.name);
      const memory = memoryOf(turn);
      if (memory === undefined) throw needsStore(this.name, turn.spec.name);
      await memory.load();
      const message = turn.working.state.history.length;
      return toEntry(memory.write(scope.key, entry, value, message), user);
    }
    const { support, clock, newId } = this.#env;
    const id = newId();
    const version = { scope: scope.key, id, entry: entry ?? id };
    await support.add(value === undefined ? version : { ...version, value }, user.owner);
    this.#definition.vectors?.embedLater({ support, scope });
    const added = {
      ...version,
      no: 0,
      createdAt: clock.now(),
      ...(value !== undefined && { value }),
    };
    return toEntry(added, user);
  }

  /** Who reads or writes: the running turn if the agent uses this memory, else the caller. */
  #reader({ owner, agent, context }: MemoryWhere): {
    readonly user: MemoryUser;
    readonly scope: MemoryScope;
    readonly turn: InvocationState | undefined;
  } {
    const invocation = InvocationSession.stateOf(sessionKey.get());
    if (invocation === undefined) {
      const user = { owner, agent, context: context ?? {} };
      return { user, scope: scopeFor(this.#definition, user), turn: undefined };
    }
    const { spec, request } = invocation;
    if (spec.memory !== this.#definition) throw otherMemory(this.name, spec.name);
    const own = invocation.scope.owner;
    if (owner !== undefined && owner !== own) throw otherOwner(this.name);
    const user = { owner: own, agent: spec.name, context: request.context };
    return { user, scope: scopeFor(this.#definition, user), turn: invocation };
  }

  /** The memory as the caller sees it. */
  async #look(where: MemoryReading): Promise<{
    readonly user: MemoryUser;
    readonly scope: MemoryScope;
    readonly index: ScopeIndex;
    readonly view: MemoryView;
    readonly rank: (query: string) => Promise<readonly RankedVersion[]>;
    readonly all: () => ReturnType<typeof newestFirst>;
  }> {
    checkOptions(where, readingNames, `a call of memory "${this.name}"`);
    const { user, scope, turn } = this.#reader(where);
    const memory = turn && memoryOf(turn);
    const support = turn?.spec.store?.memory ?? this.#env.support;
    await memory?.load();
    const viewpoint =
      where.asOf === undefined
        ? (memory?.viewpoint ?? {})
        : await pastOf(support, user.owner, snapshotIdOf(where.asOf));
    const index = await indexOf(support, scope);
    const { pending = [] } = viewpoint;
    return {
      user,
      scope,
      index,
      view: new MemoryView(support, index, viewpoint),
      rank: (query) =>
        ranked(query, { definition: this.#definition, support, scope, index, pending }),
      all: () => newestFirst(index, pending),
    };
  }
}

async function pastOf(
  support: MemorySupport,
  owner: string | undefined,
  snapshotId: string,
): Promise<Viewpoint> {
  checkId(snapshotId, 'a snapshot id');
  const note = await support.note(owner, snapshotId);
  if (note === undefined) throw notFound('snapshot', snapshotId);
  const { path, family, createdAt } = note;
  return { path, family, until: createdAt };
}

/** An entry, as one of its readers sees it. */
export function toEntry(
  version: MemoryVersion,
  { owner }: Pick<MemoryUser, 'owner'>,
): MemoryEntry<Json> {
  const { entry: id, id: versionId, value, createdAt, source } = version;
  const isOwn = version.owner === owner;
  return {
    id,
    // A forgotten one has none; only a history gives it.
    ...(value !== undefined && { value }),
    version: versionId,
    createdAt: new Date(createdAt).toISOString(),
    ...(source && isOwn && { source: originOf(source) }),
  } as MemoryEntry<Json>;
}

function originOf({ agent, sessionId, snapshotId, message }: MemoryOrigin): MemoryOrigin {
  return { agent, sessionId, snapshotId, message };
}

function noEntry(name: string, id: string): WaymarkError {
  return new WaymarkError(
    'NOT_FOUND',
    `There is no visible entry ${JSON.stringify(id.slice(0, 80))} in this part of memory "${name}".`,
  );
}

function otherMemory(name: string, agent: string): WaymarkError {
  return failedPrecondition(
    `A turn of agent "${agent}" cannot use memory "${name}": its writes would not follow the session. Give the agent \`memory\`.`,
  );
}

function otherOwner(name: string): WaymarkError {
  return new WaymarkError(
    'PERMISSION_DENIED',
    `A turn uses memory "${name}" of its own owner only. Leave out \`owner\`.`,
  );
}

function mayNotWrite(name: string): WaymarkError {
  return new WaymarkError(
    'PERMISSION_DENIED',
    `This turn may only read memory "${name}". The option \`canWrite\` of the memory decides that.`,
  );
}

function needsStore(name: string, agent: string): WaymarkError {
  return failedPrecondition(
    `Agent "${agent}" only reads memory "${name}": the client holds its state.`,
  );
}
