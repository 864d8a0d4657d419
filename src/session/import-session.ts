import * as v from 'valibot';
import { failedPrecondition, invalid, WaymarkError } from '../core/error.ts';
import { isContentHash } from '../core/json/hash.ts';
import { type Json, toJson } from '../core/json/json.ts';
import { isName, isSnapshotId } from '../protocol/ids.ts';
import { jsonObject, jsonValue } from '../protocol/json-value.ts';
import { type Message, message } from '../protocol/message.ts';
import { parseShape } from '../protocol/parse.ts';
import { type SessionInfo, session } from '../protocol/session.ts';
import { snapshot } from '../protocol/snapshot.ts';
import { type Artifact, artifact } from '../protocol/state.ts';
import type { Totals } from '../protocol/usage.ts';
import { History, messageHash } from './history.ts';
import { isStateHash, type SessionState } from './session-state.ts';

const time = v.pipe(v.string(), v.isoTimestamp());
const table = v.record(v.string(), jsonValue);

const exportedSnapshot = v.object({
  ...v.omit(snapshot, ['sessionId', 'orphaned', 'heartbeatAt', 'state', 'status']).entries,
  status: v.picklist(['succeeded', 'failed', 'aborted']),
  createdAt: time,
  updatedAt: time,
  totals: v.optional(v.object({ tokens: v.number(), toolCalls: v.number() })),
  messages: v.array(v.union([v.string(), v.tuple([v.number(), v.number()])])),
  custom: v.optional(v.string()),
  artifacts: v.array(v.string()),
});

const exportedSession = v.object({
  format: v.picklist([1, 2, 3, 4]),
  session: v.object({
    ...v.omit(session, ['state', 'running']).entries,
    createdAt: time,
    updatedAt: time,
    metadata: v.optional(jsonObject),
  }),
  content: v.object({
    messages: table,
    custom: table,
    artifacts: table,
    files: v.optional(v.record(v.string(), v.string())),
    nodes: v.optional(v.record(v.string(), v.string())),
  }),
  snapshots: v.array(exportedSnapshot),
});

type Document = v.InferOutput<typeof exportedSession>;
type Metadata = Omit<
  v.InferOutput<typeof exportedSnapshot>,
  'messages' | 'custom' | 'artifacts' | 'totals'
>;

/** One snapshot on its way in; index -1 is an unlisted head. */
export interface ImportRow {
  /** The snapshot, without its state. */
  readonly snapshot: Metadata;
  /** The usage of the session up to it. */
  readonly totals?: Totals;
  /** The state. */
  readonly state: SessionState;
}

/** A session that was read from a document and found whole. Parents come before their children. */
export interface ImportedSession {
  /** The session. */
  readonly session: SessionInfo;
  /** Its snapshots, parents first. */
  readonly snapshots: readonly ImportRow[];
}

/**
 * Reads a document of {@link toDocument}. `INVALID_ARGUMENT` when it is not one, `FAILED_PRECONDITION` when a newer version
 * wrote it, `DATA_LOSS` when its content does not fit its hashes.
 */
export function fromSessionExport(value: unknown): ImportedSession {
  checkFormat(value);
  const document = parseShape(exportedSession, value, 'session document');
  const content = readContent(document.content);
  const rows = new Map<string, ImportRow>();
  for (const each of document.snapshots) {
    const row = readSnapshot(each, content, rows);
    rows.set(row.snapshot.snapshotId, row);
  }
  checkTree(document, rows);
  return { session: document.session, snapshots: [...rows.values()] };
}

/** The same session with new snapshot ids, for a store in which the old ones are taken. */
export function renewIds(
  { session, snapshots }: ImportedSession,
  newId: () => string,
): ImportedSession {
  const ids = new Map(snapshots.map((each) => [each.snapshot.snapshotId, newId()]));
  const renewed = (id: string): string => ids.get(id) ?? id;
  const { headId } = session;
  return {
    session: headId === undefined ? session : { ...session, headId: renewed(headId) },
    snapshots: snapshots.map((each) => {
      const { snapshotId, parentId, ...rest } = each.snapshot;
      const parent = parentId === undefined ? {} : { parentId: renewed(parentId) };
      return { ...each, snapshot: { ...rest, snapshotId: renewed(snapshotId), ...parent } };
    }),
  };
}

function checkFormat(value: unknown): void {
  const format = typeof value === 'object' && value !== null && 'format' in value && value.format;
  if (typeof format !== 'number' || format <= 4) return;
  throw failedPrecondition(
    `The session document has format ${format}; this version reads up to format 4. Import it with a newer version.`,
  );
}

interface Content {
  readonly messages: ReadonlyMap<string, Message>;
  readonly custom: ReadonlyMap<string, Json>;
  readonly artifacts: ReadonlyMap<string, Artifact>;
}

function readContent(content: Document['content']): Content {
  return {
    messages: readTable(content.messages, message, (each, hash) => messageHash(each) === hash),
    custom: readTable(content.custom, jsonValue, isContentHash),
    artifacts: readTable(content.artifacts, artifact, (each, hash) =>
      isContentHash(each as unknown as Json, hash),
    ),
  };
}

/** Checks each entry against its hash and its shape. The entry itself is kept, not what parsing left of it. */
function readTable<Schema extends v.GenericSchema>(
  entries: Readonly<Record<string, Json>>,
  schema: Schema,
  isHashOf: (value: v.InferOutput<Schema>, hash: string) => boolean,
): Map<string, v.InferOutput<Schema>> {
  const values = new Map<string, v.InferOutput<Schema>>();
  for (const [hash, value] of Object.entries(entries)) {
    parseShape(schema, value, 'session document');
    const frozen: v.InferOutput<Schema> = toJson(value, 'content');
    if (!isHashOf(frozen, hash)) throw dataLoss(`The content under ${hash} has another hash.`);
    values.set(hash, frozen);
  }
  return values;
}

function readSnapshot(
  each: Document['snapshots'][number],
  content: Content,
  rows: ReadonlyMap<string, ImportRow>,
): ImportRow {
  const { messages, custom, artifacts, totals, ...metadata } = each;
  const { snapshotId, parentId } = metadata;
  if (!isSnapshotId(snapshotId)) throw notADocument(`"${snapshotId}" is not a snapshot id.`);
  if (rows.has(snapshotId)) throw notADocument(`Snapshot ${snapshotId} is in it twice.`);
  const parent = parentId === undefined ? undefined : rows.get(parentId);
  if (parentId !== undefined && parent === undefined) {
    throw notADocument(`The parent of snapshot ${snapshotId} is not before it.`);
  }
  const state: SessionState = {
    history: readMessages(messages, content, parent?.state.history ?? History.empty),
    custom: custom === undefined ? undefined : get(content.custom, custom),
    artifacts: toJson(
      artifacts.map((hash) => get(content.artifacts, hash)),
      'artifacts',
    ) as unknown as readonly Artifact[],
  };
  if (!isStateHash(state, metadata.stateHash)) {
    throw dataLoss(`The state of snapshot ${snapshotId} does not fit its hash.`);
  }
  return { snapshot: metadata, ...(totals === undefined ? {} : { totals }), state };
}

type MessageList = Document['snapshots'][number]['messages'];

function readMessages(list: MessageList, content: Content, parent: History): History {
  const [first, ...rest] = list;
  // The usual case, an append, must not cost the whole history again.
  if (Array.isArray(first) && first[0] === 0 && first[1] === parent.length) {
    return parent.append(readPieces(rest, content, parent));
  }
  return parent.replace(readPieces(list, content, parent));
}

function readPieces(list: MessageList, content: Content, parent: History): Message[] {
  const messages: Message[] = [];
  for (const piece of list) {
    if (typeof piece === 'string') messages.push(get(content.messages, piece));
    else for (let place = piece[0]; place < piece[1]; place++) messages.push(at(parent, place));
  }
  return messages;
}

function at(history: History, place: number): Message {
  const found = place < 0 ? undefined : history.at(place);
  if (found === undefined) throw dataLoss(`There is no message ${place} in the parent's history.`);
  return found;
}

function get<Value>(values: ReadonlyMap<string, Value>, hash: string): Value {
  const value = values.get(hash);
  if (value === undefined) throw dataLoss(`There is nothing under ${hash}.`);
  return value;
}

function checkTree({ session }: Document, rows: ReadonlyMap<string, ImportRow>): void {
  const { headId, sessionId } = session;
  if (!isName(sessionId)) throw notADocument(`${JSON.stringify(sessionId)} is not a session id.`);
  const head = headId === undefined ? undefined : rows.get(headId);
  if (headId !== undefined && head?.snapshot.status !== 'succeeded') {
    throw notADocument('The head is not one of its succeeded snapshots.');
  }
  let last = -1;
  for (const { snapshot } of rows.values()) {
    if (snapshot.index === -1 && snapshot.snapshotId === headId) continue;
    if (!Number.isSafeInteger(snapshot.index) || snapshot.index <= last) {
      throw notADocument('Its snapshots are not in the order of their indexes.');
    }
    last = snapshot.index;
  }
}

function notADocument(message: string): WaymarkError {
  return invalid(`Not a valid session document. ${message}`);
}

function dataLoss(message: string): WaymarkError {
  return new WaymarkError('DATA_LOSS', `The session document is damaged. ${message}`);
}
