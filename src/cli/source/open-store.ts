import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { failedPrecondition, WaymarkError } from '../../core/error.ts';
import { defined } from '../../core/json/json.ts';
import type { SessionInfo } from '../../protocol/session.ts';
import type {
  MaintenanceSupport,
  Scope,
  Store,
  TimelineSupport,
} from '../../store/contract/store.ts';
import {
  type Command,
  type Declaration,
  type OptionSpecs,
  type OptionValues,
  openingCommand,
  option,
} from '../command.ts';
import { UsageError } from '../parse-arguments.ts';
import type { Terminal } from '../terminal.ts';
import { allPages, lookUpSession, noSession, type SessionReader } from './find.ts';
import { closeApp, loadApp } from './load-app.ts';

/** Names a store, for the commands that work on a whole store. */
export const storeOptions = {
  file: option('file', 'The file that exports the app, whose store is used [agents.ts, …]', {
    short: 'f',
  }),
  store: option('store', 'The store: sqlite:<path>, file:<folder> or postgres:<url>', {
    short: 's',
  }),
};

/** The schema of a Postgres store, for the commands that name a store by itself. */
export const schemaOption = {
  schema: option('name', 'The schema of a Postgres store [waymark]'),
};

export const scopeOptions = {
  agent: option('name', 'Only sessions of this agent', { short: 'a' }),
  owner: option('id', 'Sessions of this owner [those without an owner]'),
};

export interface OpenStore {
  readonly store: Store;
  readonly maintenance: MaintenanceSupport;
  readonly timeline: TimelineSupport;
  /** The names of the app's agents; empty for a store that was opened by itself. */
  readonly agents: readonly string[];
  close(): Promise<void>;
}

/** Declares a command that works on a store. `canCreate`: the store may be missing. */
export function storeCommand<const Specs extends OptionSpecs>(
  command: Declaration<Specs, typeof storeOptions, OpenStore> & { readonly canCreate?: boolean },
): Command {
  return openingCommand<Specs, typeof storeOptions, OpenStore>(
    command,
    storeOptions,
    async ({ options, terminal }, run) => {
      terminal.progress('Opening …');
      const open = await openStore(options, terminal, command.canCreate);
      try {
        await run(open);
      } finally {
        await open.close();
      }
    },
  );
}

/** Opens the store that `--store` names, or that of the app that `--file` names. */
async function openStore(
  { file, store: spec }: OptionValues<typeof storeOptions>,
  { cwd }: Pick<Terminal, 'cwd'>,
  canCreate = false,
): Promise<OpenStore> {
  if (spec !== undefined) {
    if (file !== undefined) throw new UsageError('Use either --file or --store, not both.');
    const { create, exists, shown } = await namedStore(spec, cwd);
    // A mistyped path must not become a new, empty store.
    if (!exists && !canCreate)
      throw new WaymarkError('NOT_FOUND', `There is no store at ${shown}.`);
    const store: Store = create();
    await store.open?.();
    return await withParts(store, [], async () => await store.close?.());
  }
  const { app } = await loadApp(file, cwd, 'reading');
  const close = (): Promise<void> => closeApp(app);
  const { store } = app;
  if (store === undefined || !('name' in store)) {
    await close();
    throw failedPrecondition('The app in this file has no store. Name one with --store.');
  }
  const agents = app.agents().map(({ name }) => name);
  return await withParts(store, agents, close);
}

async function withParts(
  store: Store,
  agents: readonly string[],
  close: () => Promise<void>,
): Promise<OpenStore> {
  const { maintenance, timeline } = store;
  if (maintenance && timeline) return { store, maintenance, timeline, agents, close };
  await close();
  throw failedPrecondition(
    `The ${store.name} store has no timeline, so this command does not work with it.`,
  );
}

/** The kinds of store that are a file or a folder. */
const kinds = {
  async sqlite() {
    const sqlite = await import('../../store/sqlite/index.ts');
    return {
      create: sqlite.sqliteStore,
      backUp: sqlite.backupSqlite,
      restore: sqlite.restoreSqlite,
    };
  },
  async file() {
    const file = await import('../../store/file/index.ts');
    return { create: file.fileStore, backUp: file.backupFiles, restore: file.restoreFiles };
  },
};

/** A store that is named as `sqlite:<path>`, `file:<folder>` or `postgres:<url>`. */
export async function namedStore(spec: string, cwd: string) {
  const [, kind = '', where = ''] = /^([^:]*):(.+)$/s.exec(spec) ?? [];
  if (kind === 'sqlite' || kind === 'file') {
    const path = resolve(cwd, where);
    const { create, backUp, restore } = await kinds[kind]();
    return {
      kind,
      exists: existsSync(path),
      shown: where,
      create: () => create(path),
      backUp: (target: string) => backUp(path, target),
      restore: (source: string) => restore(source, path),
    };
  }
  if (/^postgres(ql)?$/.test(kind)) {
    const { postgresStore, restorePostgres } = await import('../../store/postgres/index.ts');
    // Both `postgres:postgres://…` and the plain address.
    const connectionString = where.startsWith('//') ? spec : where;
    return {
      kind: 'postgres' as const,
      exists: true,
      shown: spec,
      create: () => postgresStore({ connectionString }),
      backUp: undefined,
      restore: (source: string, schema = 'waymark') =>
        restorePostgres(source, { connectionString, schema }),
    };
  }
  throw new UsageError(
    `Name a store as sqlite:<path>, file:<folder> or postgres:<url>, not "${spec}".`,
  );
}

export interface ScopeFilter {
  readonly agent?: string;
  readonly owner?: string;
}

/** The scopes that the options leave: one for the named agent, or for each of the app. */
export function scopesOf({ agent, owner }: ScopeFilter, { agents }: OpenStore): Scope[] {
  if (agent !== undefined) return [scopeOf(agent, owner)];
  if (agents.length > 0) return agents.map((each) => scopeOf(each, owner));
  throw new UsageError('A store does not list its agents. Name one with --agent, or use --file.');
}

/** The sessions of an agent that belong to an owner, or to none. */
export function scopeOf(agent: string, owner: string | undefined): Scope {
  return defined({ agent, owner });
}

/** The session with this id, or the only one whose id starts with it, in a store. */
export async function findStoredSession(
  open: OpenStore,
  options: ScopeFilter,
  given: string,
): Promise<{ readonly scope: Scope; readonly session: SessionInfo }> {
  const { timeline } = open;
  const readers = scopesOf(options, open).map(
    (scope): SessionReader<Scope> => ({
      place: scope,
      name: scope.agent,
      get: (id) => timeline.getSession(scope, id),
      list: (page) => timeline.listSessions(scope, page),
    }),
  );
  const found = await lookUpSession(readers, given);
  if (found !== undefined) return { scope: found.place, session: found.session };
  throw noSession(
    given,
    options.owner === undefined
      ? 'Only sessions without an owner were searched. To search those of an owner, use --owner.'
      : `Only sessions of owner "${options.owner}" were searched.`,
  );
}

/** All sessions of a scope, newest first. */
export function sessionsIn({ timeline }: OpenStore, scope: Scope): Promise<SessionInfo[]> {
  return allPages((page) => timeline.listSessions(scope, page));
}

/**
 * Runs maintenance on a temporary copy of a store, so that its result is known before anything is deleted. `undefined` for
 * Postgres, which cannot be copied to a file that is a store.
 */
export async function rehearse<Result>(
  spec: string,
  cwd: string,
  work: (maintenance: MaintenanceSupport) => Promise<Result>,
): Promise<Result | undefined> {
  const { kind, backUp } = await namedStore(spec, cwd);
  if (backUp === undefined) return undefined;
  const folder = await mkdtemp(join(tmpdir(), 'waymark-dry-run-'));
  const copy = join(folder, 'copy');
  try {
    await backUp(copy);
    const open = await openStore({ store: `${kind}:${copy}` }, { cwd });
    try {
      return await work(open.maintenance);
    } finally {
      await open.close();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
