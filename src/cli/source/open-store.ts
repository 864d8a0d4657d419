import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { WaymarkError } from '../../core/error.ts';
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
import { usageError } from '../parse-arguments.ts';
import type { Terminal } from '../terminal.ts';
import { allPages, lookUpSession, noSession, type SessionReader } from './find.ts';
import { closeApp, findAgentsFile, loadApp } from './load-app.ts';

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

/** Options that select sessions. */
export const scopeOptions = {
  agent: option('name', 'Only sessions of this agent', { short: 'a' }),
  owner: option('id', 'Sessions of this owner [those without an owner]'),
};

/** A store that is open. */
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
    if (file !== undefined) throw usageError('Use either --file or --store, not both.');
    const store = await createStore(spec, cwd, canCreate);
    await store.open?.();
    return withParts(store, [], async () => await store.close?.());
  }
  const { app } = await loadApp(findAgentsFile(file, cwd), cwd, 'reading');
  const close = (): Promise<void> => closeApp(app);
  const { store } = app;
  if (store === undefined || !('name' in store)) {
    await close();
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      'The app in this file has no store. Name one with --store.',
    );
  }
  const agents = app.agents().map(({ name }) => name);
  return withParts(store, agents, close);
}

function withParts(store: Store, agents: readonly string[], close: () => Promise<void>): OpenStore {
  const { maintenance, timeline } = store;
  if (maintenance && timeline) return { store, maintenance, timeline, agents, close };
  throw new WaymarkError(
    'FAILED_PRECONDITION',
    `The ${store.name} store has no timeline, so this command does not work with it.`,
  );
}

async function createStore(spec: string, cwd: string, canCreate: boolean): Promise<Store> {
  const named = parseStore(spec, cwd);
  // A mistyped path must not become a new, empty store.
  if (named.kind !== 'postgres' && !canCreate && !existsSync(named.path)) {
    throw new WaymarkError('NOT_FOUND', `There is no store at ${named.shown}.`);
  }
  switch (named.kind) {
    case 'sqlite':
      return (await import('../../store/sqlite/index.ts')).sqliteStore(named.path);
    case 'file':
      return (await import('../../store/file/index.ts')).fileStore(named.path);
    case 'postgres': {
      const { connectionString } = named;
      return (await import('../../store/postgres/index.ts')).postgresStore({ connectionString });
    }
  }
}

/** A store, as named on the command line. */
type NamedStore =
  | { readonly kind: 'sqlite' | 'file'; readonly path: string; readonly shown: string }
  | { readonly kind: 'postgres'; readonly connectionString: string };

/** Parses the name of a store: `sqlite:<path>`, `file:<folder>` or `postgres:<url>`. */
export function parseStore(spec: string, cwd: string): NamedStore {
  const at = spec.indexOf(':');
  const [kind, where] = at < 0 ? [spec, ''] : [spec.slice(0, at), spec.slice(at + 1)];
  if (where === '') throw badStore(spec);
  switch (kind) {
    case 'sqlite':
    case 'file':
      return { kind, path: resolve(cwd, where), shown: where };
    case 'postgres':
    case 'postgresql':
      // Both `postgres:postgres://…` and the plain address.
      return { kind: 'postgres', connectionString: where.startsWith('//') ? spec : where };
    default:
      throw badStore(spec);
  }
}

function badStore(spec: string): WaymarkError {
  return usageError(
    `Name a store as sqlite:<path>, file:<folder> or postgres:<url>, not "${spec}".`,
  );
}

/** The options that say in which scopes of a store to look. */
interface ScopeFilter {
  readonly agent?: string;
  readonly owner?: string;
}

/** The scopes that the options leave: one for the named agent, or for each of the app. */
export function scopesOf(
  { agent, owner }: ScopeFilter,
  { agents }: Pick<OpenStore, 'agents'>,
): Scope[] {
  if (agent !== undefined) return [scopeOf(agent, owner)];
  if (agents.length > 0) return agents.map((each) => scopeOf(each, owner));
  throw usageError('A store does not list its agents. Name one with --agent, or use --file.');
}

/** The sessions of an agent that belong to an owner, or to none. */
export function scopeOf(agent: string, owner: string | undefined): Scope {
  return owner === undefined ? { agent } : { agent, owner };
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
export function sessionsIn(
  { timeline }: Pick<OpenStore, 'timeline'>,
  scope: Scope,
): Promise<SessionInfo[]> {
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
  const store = parseStore(spec, cwd);
  if (store.kind === 'postgres') return undefined;
  const folder = await mkdtemp(join(tmpdir(), 'waymark-dry-run-'));
  const copy = join(folder, 'copy');
  try {
    await backUp(store, copy);
    const open = await openStore({ store: `${store.kind}:${copy}` }, { cwd });
    try {
      return await work(open.maintenance);
    } finally {
      await open.close();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Copies a store to a file or folder. */
export async function backUp(
  { kind, path }: Exclude<NamedStore, { kind: 'postgres' }>,
  target: string,
): Promise<{ readonly sessions: number }> {
  if (kind === 'sqlite')
    return (await import('../../store/sqlite/index.ts')).backupSqlite(path, target);
  return (await import('../../store/file/index.ts')).backupFiles(path, target);
}

/** Creates a store from its copy. */
export async function restoreBackup(
  store: NamedStore,
  source: string,
  schema: string | undefined,
): Promise<{ readonly sessions: number }> {
  switch (store.kind) {
    case 'sqlite':
      return (await import('../../store/sqlite/index.ts')).restoreSqlite(source, store.path);
    case 'file':
      return (await import('../../store/file/index.ts')).restoreFiles(source, store.path);
    case 'postgres': {
      const where = { connectionString: store.connectionString, ...(schema && { schema }) };
      return (await import('../../store/postgres/index.ts')).restorePostgres(source, where);
    }
  }
}
