import { createReadStream, existsSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { App } from '../app.ts';
import { failedPrecondition } from '../core/error.ts';
import { defined, jsonIn } from '../core/json/json.ts';
import type { SessionExport } from '../session/export-session.ts';
import type { Scope, SessionFilter, Store } from '../store/contract/store.ts';

/** Sessions of a store. A session must pass all that is given. */
interface StoredSessions extends SessionFilter {
  /** @default the app's store */
  readonly store?: Store;
  /** @default all agents of the app */
  readonly agent?: string;
  /** The owner of the sessions. */
  readonly owner?: string;
  /** These sessions only. */
  readonly ids?: readonly string[];
  /** At most this many, newest first. @default all */
  readonly limit?: number;
}

/** Where a replay gets its sessions from. A text is an export file, a folder of export files, or the id of a session. */
export type SessionSource =
  | string
  | readonly string[]
  | StoredSessions
  | SessionExport
  | readonly SessionExport[];

/** A session before it is read. */
export interface FoundSession {
  /** The id of the session, or the place in a file. */
  readonly name: string;
  /** Its owner, where the source names one. */
  readonly owner?: string | undefined;
  /** Reads the whole session; `undefined` when it no longer exists. */
  read(): Promise<SessionExport | undefined>;
}

/** Lists the sessions of a source, one after the other; only those that are being replayed are in memory. */
export async function* findSessions(app: App, source: SessionSource): AsyncGenerator<FoundSession> {
  if (typeof source === 'string') {
    if (existsSync(source)) yield* exportsAt(source);
    else yield* storedSessions(app, { ids: [source] });
  } else if (isList(source)) for (const each of source) yield* findSessions(app, each);
  else if ('format' in source)
    yield { name: source.session?.sessionId ?? 'document', read: async () => source };
  else yield* storedSessions(app, source);
}

function isList(source: SessionSource): source is readonly string[] | readonly SessionExport[] {
  return Array.isArray(source);
}

async function* storedSessions(app: App, source: StoredSessions): AsyncGenerator<FoundSession> {
  const { store: given = app.store, agent, owner, ids, limit = Infinity, ...filter } = source;
  const store = withExports(given);
  const names = agent === undefined ? app.agents().map(({ name }) => name) : [agent];
  const scopes = names.map((name) => defined({ agent: name, owner }));
  if (agent !== undefined) await checkAgent(app, store, { agent, owner });
  let count = 0;
  if (ids !== undefined) {
    for (const id of ids)
      if (count++ < limit) yield { name: id, owner, read: () => read(store, scopes, id) };
    return;
  }
  for (const scope of scopes) {
    let cursor: string | undefined;
    do {
      const page = await store.timeline?.listSessions(scope, { ...filter, ...defined({ cursor }) });
      for (const { sessionId } of page?.items ?? []) {
        if (count++ >= limit) return;
        yield { name: sessionId, owner, read: () => read(store, [scope], sessionId) };
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
  const page = await store.timeline?.listSessions(defined({ agent, owner }), { limit: 1 });
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
  throw failedPrecondition(
    'There is no store with sessions to replay. Give `sessions` a store that can export, such as sqliteStore, or export files.',
  );
}

/** The sessions of an export file (a document, or one for each line) or of the files in a folder. */
async function* exportsAt(path: string): AsyncGenerator<FoundSession> {
  if ((await stat(path)).isDirectory()) {
    const names = (await readdir(path)).filter((name) => /\.jsonl?$/.test(name)).toSorted();
    for (const name of names) yield* exportsAt(join(path, name));
    return;
  }
  if (!path.endsWith('.jsonl')) {
    const text = await readFile(path, 'utf8');
    if (!isLines(text)) {
      yield { name: path, read: async () => parse(text, path) };
      return;
    }
  }
  const lines = createInterface({ input: createReadStream(path), crlfDelay: Infinity });
  let count = 0;
  for await (const line of lines) {
    const name = `${path}:${++count}`;
    if (line.trim() !== '') yield { name, read: async () => parse(line, name) };
  }
}

/** Whether a text is several documents: the first line is a whole one, and others follow. */
function isLines(text: string): boolean {
  const end = text.indexOf('\n');
  if (end < 0 || text.slice(end).trim() === '') return false;
  try {
    JSON.parse(text.slice(0, end));
    return true;
  } catch {
    return false;
  }
}

// Its shape is checked when it is read.
function parse(text: string, name: string): SessionExport {
  const problem = `${name} is not JSON. Expected an exported session.`;
  return jsonIn(text, problem) as unknown as SessionExport;
}
