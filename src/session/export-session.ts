import { getOrMake } from '../core/get-or-make.ts';
import { contentHash, formerContentHash } from '../core/json/hash.ts';
import type { Json, JsonObject } from '../core/json/json.ts';
import type { Message } from '../protocol/message.ts';
import type { SessionInfo } from '../protocol/session.ts';
import type { Snapshot } from '../protocol/snapshot.ts';
import type { Totals } from '../protocol/usage.ts';
import { type History, messageHash } from './history.ts';
import type { SessionState } from './session-state.ts';

/** One session as one JSON document, with its whole tree. */
export interface SessionExport {
  /** The format of the document; 3 if it has files, 4 if it has those of a workspace. */
  readonly format: 1 | 2 | 3 | 4;
  /** The session. */
  readonly session: SessionInfo;
  /** Messages, custom states, artifacts, files and folders (as base64) each stand once; snapshots and artifacts name them by hash. */
  readonly content: JsonObject;
  /** Its snapshots, parents first. */
  readonly snapshots: readonly JsonObject[];
  /** The entries that its turns have written to the memory of its owner. */
  readonly memory?: JsonObject;
}

/** One snapshot on its way out. */
export interface ExportRow {
  /** Without its state. Pending and expired ones are left out by the store: they are no data yet, or never will be. */
  readonly snapshot: Snapshot;
  /** The usage of the session up to it. */
  readonly totals?: Totals | undefined;
  /** The state. */
  readonly state: SessionState;
}

/**
 * A session as one document. Snapshots come parents first, an unlisted head last. A message list is written as hashes of
 * new messages and `[from, to]` ranges of the parent's list, so that the document grows as the content does.
 */
export async function toSessionExport(
  session: SessionInfo,
  rows: Iterable<ExportRow> | AsyncIterable<ExportRow>,
): Promise<SessionExport> {
  const content = { messages: {}, custom: {}, artifacts: {} };
  const messages = messageTable(content.messages);
  const histories = new Map<string, History>();
  const snapshots: JsonObject[] = [];
  for await (const { snapshot, totals, state } of rows) {
    const parent = histories.get(snapshot.parentId ?? '');
    histories.set(snapshot.snapshotId, shared(parent, state.history));
    snapshots.push({
      ...metadataOf(snapshot),
      ...(totals === undefined ? {} : { totals: { ...totals } }),
      messages: messageList(messages, parent, state.history),
      ...(state.custom === undefined ? {} : { custom: put(content.custom, state.custom) }),
      artifacts: state.artifacts.map((each) => put(content.artifacts, asJson(each))),
    });
  }
  const { running: _, state: __, ...info } = session;
  return { format: formatOf(content), session: info, content, snapshots };
}

/** 1 if a version that knows only the first content hash can read the document. */
function formatOf({ custom, artifacts }: Record<'custom' | 'artifacts', Table>): 1 | 2 {
  const entries = [...Object.entries(custom), ...Object.entries(artifacts)];
  return entries.every(([hash, value]) => formerContentHash(value) === hash) ? 1 : 2;
}

// Versions that were loaded one by one hold their own copies; messages that continue the parent's are held once.
function shared(parent: History | undefined, history: History): History {
  if (parent === undefined || !parent.isPrefixOf(history)) return history;
  return parent.append(history.toArray(parent.length));
}

function metadataOf(snapshot: Snapshot): JsonObject {
  const { sessionId: _, orphaned: __, heartbeatAt: ___, state: ____, ...metadata } = snapshot;
  return metadata as unknown as JsonObject;
}

type Table = Record<string, Json>;

function put(table: Table, value: Json): string {
  const hash = contentHash(value);
  table[hash] = value;
  return hash;
}

/** The messages of a document by their hashes, each of which is worked out once. */
interface MessageTable {
  hashOf(message: Message): string;
  put(message: Message): string;
}

function messageTable(table: Table): MessageTable {
  const hashes = new Map<Message, string>();
  const hashOf = (message: Message): string =>
    getOrMake(hashes, message, () => messageHash(message));
  return {
    hashOf,
    put(message) {
      const hash = hashOf(message);
      table[hash] = asJson(message);
      return hash;
    },
  };
}

function messageList(table: MessageTable, parent: History | undefined, history: History): Json[] {
  if (parent === undefined) return history.toArray().map(table.put);
  if (parent.isPrefixOf(history)) {
    const fresh = history.toArray(parent.length).map(table.put);
    return parent.length === 0 ? fresh : [[0, parent.length], ...fresh];
  }
  return pieces(table, parent.toArray().map(table.hashOf), history);
}

/** After a trim or an edit: ranges of what the parent has, by hash, and hashes of what it has not. */
function pieces(table: MessageTable, parent: readonly string[], history: History): Json[] {
  const places = new Map(parent.map((hash, place) => [hash, place]));
  const list: (string | [number, number])[] = [];
  for (const message of history.toArray()) {
    const hash = table.hashOf(message);
    const last = list.at(-1);
    const place = places.get(hash);
    if (Array.isArray(last) && parent[last[1]] === hash) last[1]++;
    else list.push(place === undefined ? table.put(message) : [place, place + 1]);
  }
  return list;
}

// Messages and artifacts are JSON by their schemas; the type of JSON objects does not know optional properties.
function asJson(value: object): Json {
  return value as unknown as Json;
}
