import type { App } from '../../app.ts';
import { WaymarkError } from '../../core/error.ts';
import type { SessionExport } from '../../session/export-session.ts';
import type { Scope, Store } from '../../store/contract/store.ts';
import { exportsAt, isPath } from './export-files.ts';
import type { FoundSession, SessionSource, StoredSessions } from './session-source.ts';

/** Lists the sessions of a source, one after the other; only those that are being replayed are in memory. */
export async function* findSessions(app: App, source: SessionSource): AsyncGenerator<FoundSession> {
  if (typeof source === 'string') {
    if (await isPath(source)) yield* exportsAt(source);
    else yield* storedSessions(app, { ids: [source] });
  } else if (isList(source)) for (const each of source) yield* findSessions(app, each);
  else if (isDocument(source)) yield { name: nameOf(source), read: async () => source };
  else yield* storedSessions(app, source);
}

function isList(source: SessionSource): source is readonly string[] | readonly SessionExport[] {
  return Array.isArray(source);
}

function isDocument(source: SessionExport | StoredSessions): source is SessionExport {
  return 'format' in source;
}

function nameOf({ session }: SessionExport): string {
  return session?.sessionId ?? 'document';
}

async function* storedSessions(app: App, source: StoredSessions): AsyncGenerator<FoundSession> {
  const { store: given = app.store, agent, owner, ids, limit = Infinity, ...filter } = source;
  const store = withExports(given);
  const names = agent === undefined ? app.agents().map(({ name }) => name) : [agent];
  const scopes = names.map((name) => ({ agent: name, ...(owner !== undefined && { owner }) }));
  if (agent !== undefined) await checkAgent(app, store, { agent, owner });
  let count = 0;
  if (ids !== undefined) {
    for (const id of ids)
      if (count++ < limit) yield { name: id, read: () => read(store, scopes, id) };
    return;
  }
  for (const scope of scopes) {
    let cursor: string | undefined;
    do {
      const page = await store.timeline?.listSessions(scope, {
        ...filter,
        ...(cursor && { cursor }),
      });
      for (const { sessionId } of page?.items ?? []) {
        if (count++ >= limit) return;
        yield { name: sessionId, read: () => read(store, [scope], sessionId) };
      }
      cursor = page?.next;
    } while (cursor !== undefined);
  }
}

/** Rejects the name of an agent that neither the app nor the store has. Sessions of a removed agent are skipped with a reason. */
async function checkAgent(
  app: App,
  store: Store,
  { agent, owner }: { readonly agent: string; readonly owner: string | undefined },
): Promise<void> {
  if (app.agents().some(({ name }) => name === agent)) return;
  const scope = { agent, ...(owner !== undefined && { owner }) };
  const page = await store.timeline?.listSessions(scope, { limit: 1 });
  if (page === undefined || page.items.length > 0) return;
  // Throws NOT_FOUND and lists the agents.
  app.agent(agent);
}

async function read(
  store: Store,
  scopes: readonly Scope[],
  sessionId: string,
): Promise<SessionExport | undefined> {
  for (const scope of scopes) {
    const document = await store.maintenance?.exportSession(scope, sessionId);
    if (document !== undefined) return document;
  }
  return undefined;
}

function withExports(store: App['store']): Store {
  if (store !== undefined && 'maintenance' in store && store.maintenance !== undefined)
    return store;
  throw new WaymarkError(
    'FAILED_PRECONDITION',
    'There is no store with sessions to replay. Give `sessions` a store that can export, such as sqliteStore, or export files.',
  );
}
