import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { WaymarkError } from '../../core/error.ts';
import type { MaintenanceSupport, Store, TimelineSupport } from '../../store/contract/store.ts';
import type { OptionSpecs, OptionValues } from '../command.ts';
import { usageError } from '../parse-arguments.ts';
import type { Terminal } from '../terminal.ts';
import { closeApp } from './close-app.ts';
import { findAgentsFile } from './find-file.ts';
import { loadApp } from './load-app.ts';

/** Names a store, for the commands that work on a whole store. */
export const storeOptions = {
  file: {
    type: 'string',
    short: 'f',
    value: 'file',
    about: 'The file that exports the app, whose store is used [agents.ts, …]',
  },
  store: {
    type: 'string',
    short: 's',
    value: 'store',
    about: 'The store: sqlite:<path>, file:<folder> or postgres:<url>',
  },
} as const satisfies OptionSpecs;

/** The schema of a Postgres store, for the commands that name a store by itself. */
export const schemaOption = {
  schema: { type: 'string', value: 'name', about: 'The schema of a Postgres store [waymark]' },
} as const satisfies OptionSpecs;

/** Options that select sessions. */
export const scopeOptions = {
  agent: { type: 'string', short: 'a', value: 'name', about: 'Only sessions of this agent' },
  owner: { type: 'string', value: 'id', about: 'Sessions of this owner [those without an owner]' },
} as const satisfies OptionSpecs;

/** A store that is open. */
export interface OpenStore {
  readonly store: Store;
  readonly maintenance: MaintenanceSupport;
  readonly timeline: TimelineSupport;
  /** The names of the app's agents; empty for a store that was opened by itself. */
  readonly agents: readonly string[];
  close(): Promise<void>;
}

/** Opens the store that `--store` names, or that of the app that `--file` names. `make`: creates a missing store. */
export async function openStore(
  { file, store: spec }: OptionValues<typeof storeOptions>,
  { cwd }: Pick<Terminal, 'cwd'>,
  { make = false }: { readonly make?: boolean } = {},
): Promise<OpenStore> {
  if (spec !== undefined) {
    if (file !== undefined) throw usageError('Use either --file or --store, not both.');
    const store = await createStore(spec, cwd, make);
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

async function createStore(spec: string, cwd: string, make: boolean): Promise<Store> {
  const named = parseStore(spec, cwd);
  switch (named.kind) {
    case 'sqlite':
      checkThere(named, make);
      return (await import('../../store/sqlite/index.ts')).sqliteStore(named.path);
    case 'file':
      checkThere(named, make);
      return (await import('../../store/file/index.ts')).fileStore(named.path);
    case 'postgres': {
      const { connectionString } = named;
      return (await import('../../store/postgres/index.ts')).postgresStore({ connectionString });
    }
  }
}

/** A store, as named on the command line. */
export type NamedStore =
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

// A mistyped path must not become a new, empty store.
function checkThere(
  { path, shown }: { readonly path: string; readonly shown: string },
  make: boolean,
): void {
  if (make || existsSync(path)) return;
  throw new WaymarkError('NOT_FOUND', `There is no store at ${shown}.`);
}

function badStore(spec: string): WaymarkError {
  return usageError(
    `Name a store as sqlite:<path>, file:<folder> or postgres:<url>, not "${spec}".`,
  );
}

/** The agents whose sessions are selected: the named one, or all of the app. */
export function agentsOf(
  { agent }: { readonly agent?: string },
  { agents }: Pick<OpenStore, 'agents'>,
): readonly string[] {
  if (agent !== undefined) return [agent];
  if (agents.length > 0) return agents;
  throw usageError('A store does not list its agents. Name one with --agent, or use --file.');
}
