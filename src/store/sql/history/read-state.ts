import { WaymarkError } from '../../../core/error.ts';
import { deepFreeze, type Json } from '../../../core/json/json.ts';
import type { Message } from '../../../protocol/message.ts';
import { type MessagePage, positionsOf } from '../../../protocol/message-page.ts';
import type { Artifact } from '../../../protocol/state.ts';
import { History } from '../../../session/history.ts';
import {
  emptyState,
  hashState,
  isStateHash,
  type SessionState,
} from '../../../session/session-state.ts';
import { type DocumentRef, readDocument } from '../content/document.ts';
import type { ManifestRef, StoredManifest } from '../content/manifest.ts';
import { documentPlace, messagePlace } from '../content/places.ts';
import type { Dialect } from '../database/dialect.ts';
import { all, type Plan, type SqlValue, statement } from '../database/query.ts';
import { code } from '../values/codes.ts';
import { type Level, viewOf } from './lineage.ts';
import { type MarkRow, markRows } from './marks.ts';
import { readArtifacts, undamaged } from './read-artifacts.ts';
import { cut, type Segment, segmentsOf, type View } from './segments.ts';
import type { StateContext } from './state-rows.ts';

interface StateRow {
  readonly kind: number;
  readonly at: number;
  readonly body: SqlValue;
}

const kinds = { message: 0, custom: 1, artifacts: 2, mark: 3 } as const;

const stateRows = (d: Dialect): string => `
  SELECT ${kinds.message} AS kind, m.id AS at, m.body AS body FROM ${d.messageRanges('$1')}
  UNION ALL SELECT ${kinds.custom}, c.d, c.body FROM chain c
  UNION ALL SELECT ${kinds.artifacts}, b.row_id, b.body FROM @blobs b WHERE b.row_id = $3`;

const chain = (d: Dialect): string => `chain(d, row_id, prev, body) AS (
    SELECT 0, b.row_id, b.prev, b.body FROM @blobs b WHERE b.row_id = $2
    UNION ALL
    SELECT c.d + 1, b.row_id, b.prev, b.body FROM chain c ${d.lookup('blobs', 'b', 'b.row_id = c.prev')})`;

const selectState = statement<StateRow>(
  'read_state',
  (d) => `WITH RECURSIVE ${chain(d)} ${stateRows(d)}`,
);

const selectMarkedState = statement<StateRow>(
  'read_marked_state',
  (d) => `WITH RECURSIVE ${chain(d)} ${stateRows(d)}
    UNION ALL SELECT ${kinds.mark}, s.row_id, ${markRows(d)} FROM @snapshots s
    LEFT JOIN @views v ON v.branch = s.branch AND v.row_id = s.view
    WHERE s.session = $4 AND s.idx IS NOT NULL AND s.status = ${code.succeeded}`,
);

/** Where a state lies, as a row describes it. */
export interface StatePlace {
  readonly levels: readonly Level[];
  readonly custom: number | null;
  readonly artifacts: number | null;
  readonly stateHash: string;
}

/** A state as it was read, with where its documents lie. */
export interface StateRead {
  readonly state: SessionState;
  readonly view: View | undefined;
  readonly custom: DocumentRef | undefined;
  readonly artifacts: ManifestRef | undefined;
  readonly marks: readonly MarkRow[];
}

/** A page of a state's messages as it was read, with its documents. */
export interface PageRead {
  readonly messages: Message[];
  readonly from: number;
  readonly total: number;
  readonly custom: Json | undefined;
  readonly artifacts: readonly Artifact[];
}

/** Reads a page of a state's messages, and its documents. The hash is over all messages, so it cannot be checked. */
export function* readPage(
  place: StatePlace,
  page: MessagePage,
  context: StateContext,
): Plan<PageRead> {
  const view = viewOf(place.levels);
  const segments = view === undefined ? [] : segmentsOf(view);
  const total = segments.reduce((sum, [low, high]) => sum + high - low, 0);
  const { from, to } = positionsOf(page, total);
  const read = yield* readRows(place, cut(segments, from, to), context);
  if (read.messages.length !== to - from) throw lostMessages();
  return {
    messages: [...read.messages],
    from,
    total,
    custom: read.custom?.value,
    artifacts: read.artifacts?.value ?? emptyState.artifacts,
  };
}

/** Reads a state, in one query or, with large artifacts, in two, and checks it against its hash. */
export function* readState(
  place: StatePlace,
  context: StateContext,
  markedIn?: number,
): Plan<StateRead> {
  const view = viewOf(place.levels);
  const segments = view === undefined ? [] : segmentsOf(view);
  const { messages, custom, artifacts, marks } = yield* readRows(
    place,
    segments,
    context,
    markedIn,
  );
  const state = {
    history: History.of(messages),
    custom: custom?.value,
    artifacts: artifacts?.value ?? emptyState.artifacts,
  };
  verify(state, place.stateHash);
  return { state, view, custom: custom?.ref, artifacts: artifacts?.ref, marks };
}

/** The messages in some ranges of rows, and the documents of a state. */
function* readRows(
  place: StatePlace,
  segments: readonly Segment[],
  { cipher }: StateContext,
  markedIn?: number,
): Plan<{
  readonly messages: readonly Message[];
  readonly custom: ReturnType<typeof readDocument>;
  readonly artifacts:
    | { readonly value: readonly Artifact[]; readonly ref: ManifestRef }
    | undefined;
  readonly marks: readonly MarkRow[];
}> {
  const values = [JSON.stringify(segments), place.custom, place.artifacts];
  const rows =
    markedIn === undefined
      ? yield* all(selectState, ...values)
      : yield* all(selectMarkedState, ...values, markedIn);
  const bodies = new Map<number, string>();
  const documents: string[] = [];
  const marks: string[] = [];
  let manifest: StoredManifest | undefined;
  for (const { kind, at, body } of rows) {
    if (kind === kinds.message) bodies.set(at, cipher.decrypt(body, messagePlace));
    else if (kind === kinds.custom) documents[at] = cipher.decrypt(body, documentPlace);
    else if (kind === kinds.artifacts)
      // The hash of the state shows whether it is still what was written.
      manifest = undamaged(() => JSON.parse(cipher.decrypt(body, documentPlace)) as StoredManifest);
    else marks.push(String(body));
  }
  const { custom: root } = place;
  const custom = root === null ? undefined : undamaged(() => readDocument(root, documents));
  const artifacts = yield* readArtifacts(place.artifacts, manifest, cipher);
  return { messages: messagesOf(segments, bodies), custom, artifacts, marks: toMarks(marks) };
}

const selectMessages = statement<{ at: number; body: SqlValue }>(
  'read_messages',
  (d) => `SELECT m.id AS at, m.body AS body FROM ${d.messageRanges('$1')}`,
);

/** The messages in some lists of ranges of rows, a list for each. */
export function* readMessages(
  lists: readonly (readonly Segment[])[],
  { cipher }: StateContext,
): Plan<readonly (readonly Message[])[]> {
  const bodies = new Map<number, string>();
  for (const { at, body } of yield* all(selectMessages, JSON.stringify(lists.flat()))) {
    bodies.set(at, cipher.decrypt(body, messagePlace));
  }
  return lists.map((segments) => messagesOf(segments, bodies));
}

/** The artifacts in a stored list. */
export function* readArtifactsAt(
  artifacts: number,
  context: StateContext,
): Plan<readonly Artifact[]> {
  const place = { levels: [], custom: null, artifacts, stateHash: '' };
  return (yield* readRows(place, [], context)).artifacts?.value ?? emptyState.artifacts;
}

function lostMessages(): WaymarkError {
  return new WaymarkError(
    'DATA_LOSS',
    'A stored message is missing: the database was damaged or changed by hand. Restore it from a backup, or continue from another snapshot.',
  );
}

function toMarks(texts: readonly string[]): readonly MarkRow[] {
  return texts.map((text) => JSON.parse(text) as MarkRow);
}

/** The messages in the order of their segments. A row that is not there is left out: the hash will tell. */
function messagesOf(
  segments: readonly Segment[],
  bodies: ReadonlyMap<number, string>,
): readonly Message[] {
  const messages: Message[] = [];
  for (const [from, to] of segments) {
    for (let id = from; id < to; id++) {
      const body = bodies.get(id);
      if (body !== undefined) messages.push(deepFreeze(parse(body) as Message));
    }
  }
  return messages;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new WaymarkError('DATA_LOSS', 'A stored message is no longer JSON.', { cause });
  }
}

function verify(state: SessionState, expected: string): void {
  if (isStateHash(state, expected)) return;
  const found = hashState(state);
  throw new WaymarkError(
    'DATA_LOSS',
    'A stored state does not fit its hash: the database was damaged or changed by hand. Restore it from a backup, or continue from another snapshot.',
    { details: { expected, found } satisfies Json },
  );
}
