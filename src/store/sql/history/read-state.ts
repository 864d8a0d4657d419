import { WaymarkError } from '../../../core/error.ts';
import { deepFreeze, type Json } from '../../../core/json/json.ts';
import type { Message } from '../../../protocol/message.ts';
import type { Artifact } from '../../../protocol/state.ts';
import { History } from '../../../session/history.ts';
import {
  emptyState,
  hashState,
  isStateHash,
  type SessionState,
} from '../../../session/session-state.ts';
import { type DocumentRef, readDocument } from '../content/document.ts';
import {
  type ManifestRef,
  parseManifest,
  partsOf,
  readManifest,
  type StoredManifest,
} from '../content/manifest.ts';
import { documentPlace, messagePlace } from '../content/places.ts';
import type { Dialect } from '../database/dialect.ts';
import { all, type Plan, type SqlValue, statement } from '../database/query.ts';
import { hexOf } from '../values/bytes.ts';
import { code } from '../values/codes.ts';
import { type Level, viewOf } from './lineage.ts';
import { type MarkRow, markRows } from './mark-rows.ts';
import { type Segment, segmentsOf, type View } from './segments.ts';
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

const selectParts = statement<{ row_id: number; hash: Uint8Array; body: SqlValue }>(
  'read_parts',
  (d) => `SELECT b.row_id, b.hash, b.body FROM @blobs b WHERE b.hash IN ${d.bytes('$1')}`,
);

/** Where a state lies, as a row says it. */
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

/** Reads a state, in one query or, with large artifacts, in two, and holds it against its hash. */
export function* readState(
  place: StatePlace,
  { cipher }: StateContext,
  markedIn?: number,
): Plan<StateRead> {
  const view = viewOf(place.levels);
  const segments = view === undefined ? [] : segmentsOf(view);
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
      manifest = parseManifest(cipher.decrypt(body, documentPlace));
    else marks.push(String(body));
  }
  const custom = place.custom === null ? undefined : readDocument(place.custom, documents);
  const artifacts = yield* readArtifacts(place.artifacts, manifest, cipher);
  const state = {
    history: History.of(messagesOf(segments, bodies)),
    custom: custom?.value,
    artifacts: artifacts?.value ?? emptyState.artifacts,
  };
  verify(state, place.stateHash);
  return { state, view, custom: custom?.ref, artifacts: artifacts?.ref, marks: toMarks(marks) };
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
    throw new WaymarkError('DATA_LOSS', 'A stored message is not JSON any more.', { cause });
  }
}

function* readArtifacts(
  rowId: number | null,
  manifest: StoredManifest | undefined,
  cipher: StateContext['cipher'],
): Plan<{ readonly value: readonly Artifact[]; readonly ref: ManifestRef } | undefined> {
  if (rowId === null || manifest === undefined) return undefined;
  const names = partsOf(manifest);
  const rows = names.length > 0 ? yield* all(selectParts, JSON.stringify(names)) : [];
  const texts = new Map(
    rows.map(({ hash, body }) => [hexOf(hash), cipher.decrypt(body, documentPlace)]),
  );
  const parts = new Map(rows.map((row) => [hexOf(row.hash), row.row_id]));
  return { value: readManifest(manifest, texts), ref: { rowId, parts } };
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
