import { hasStatus, WaymarkError } from '../../../core/error.ts';
import { carryHashes } from '../../../core/json/hash.ts';
import type { Json } from '../../../core/json/json.ts';
import { applyPatch, type JsonPatch } from '../../../core/json/patch.ts';
import type { Message } from '../../../protocol/message.ts';
import type { Artifact } from '../../../protocol/state.ts';
import { History } from '../../../session/history.ts';
import { emptyState, isStateHash, type SessionState } from '../../../session/session-state.ts';
import { readDocument } from '../content/document.ts';
import { documentPlace, type HomeRow } from '../content/places.ts';
import type { Dialect } from '../database/dialect.ts';
import { all, first, type Plan, type SqlValue, statement } from '../database/query.ts';
import { parseLineage, selectLineage, viewOf } from '../history/lineage.ts';
import { undamaged } from '../history/read-artifacts.ts';
import { readArtifactsAt, readMessages, readState } from '../history/read-state.ts';
import { cut, messageRowId, rowsPerBranch, type Segment } from '../history/segments.ts';
import type { StateContext } from '../history/state-rows.ts';
import { openHash, type SnapshotRow } from './snapshot-row.ts';

/** The columns that say where the state of a snapshot `s` lies; `b` is its branch. */
export const placeColumns = `s.row_id, s.branch, s.branch_length, s.view, s.custom, s.artifacts, b.parent AS branch_parent`;

/** Joins the branch of a snapshot `s`. */
export function joinBranch(d: Dialect): string {
  return d.lookupOptional('branches', 'b', 'b.row_id = s.branch');
}

/** A snapshot or checkpoint with where its state lies. */
export interface PlacedRow extends Pick<SnapshotRow, keyof HomeRow | 'id' | 'state_hash'> {
  readonly row_id: number;
  readonly branch: number | null;
  readonly branch_length: number;
  readonly view: number | null;
  readonly custom: number | null;
  readonly artifacts: number | null;
  readonly branch_parent: number | null;
}

interface DocumentRow {
  readonly prev: number | null;
  readonly body: SqlValue;
}

const selectDocument = statement<DocumentRow>(
  'states_document',
  'SELECT prev, body FROM @blobs WHERE row_id = $1',
);
// So small that those of two hundred snapshots are read in a moment.
const selectSmall = statement<DocumentRow & { readonly row_id: number }>(
  'states_documents',
  (d) =>
    `SELECT row_id, prev, body FROM @blobs WHERE row_id ${d.integers('$1')} AND octet_length(body) <= 500`,
);

/** Messages that are read at a time, of one history or of several short ones. */
const pageSize = 64;

/** The messages of a branch under a view, of which some have been read. */
interface Line {
  readonly segments: readonly Segment[];
  /** The number of messages before the rows of the branch, and the first of these rows. */
  readonly before: number;
  readonly from: number;
  history: History;
  /** How many of them to read; fewer than were asked for when one cannot be read. */
  end: number;
}

// It must not be read as a whole: that would never end.
const circular = new WaymarkError(
  'DATA_LOSS',
  'A stored state is a change of itself: the database was damaged or changed by hand. Restore it from a backup, or continue from another snapshot.',
);

/** A document that was read, by its row. */
interface Read<Value> {
  readonly rowId: number;
  readonly value: Value;
}

/**
 * Reads the states of many snapshots. Each message is read once, in pages, and a document is made of the one before by its patch, so
 * that snapshots in the order in which they were written cost what is new in each.
 */
export class StateReader {
  readonly #context: StateContext;
  #lines: ReadonlyMap<string, Line> = new Map();
  #documents: ReadonlyMap<number, DocumentRow> = new Map();
  #custom: Read<Json> | undefined;
  #artifacts: Read<readonly Artifact[]> | undefined;

  constructor(context: StateContext) {
    this.#context = context;
  }

  /** Reads the messages and small documents of the snapshots that are read next. */
  *expect(rows: readonly PlacedRow[]): Plan<void> {
    const lines = new Map<string, Line>();
    for (const row of rows) {
      const key = lineKey(row);
      const line = lines.get(key) ?? this.#lines.get(key) ?? (yield* lineOf(row));
      lines.set(key, line);
      line.end = Math.max(line.end, lengthOn(line, row));
    }
    this.#lines = lines;
    for (let open = [...lines.values()]; ; ) {
      open = open.filter(({ history, end }) => history.length < end);
      if (open.length === 0) break;
      yield* this.#readPage(open);
    }
    const documents = new Set(rows.map((row) => row.custom).filter((rowId) => rowId !== null));
    if (documents.size === 0) return;
    const found = yield* all(selectSmall, JSON.stringify([...documents]));
    this.#documents = new Map(found.map((row) => [row.row_id, row]));
  }

  /** The state of a row, checked against its hash. */
  *read(row: PlacedRow): Plan<SessionState> {
    try {
      const state = yield* this.#stateOf(row);
      if (state !== undefined) return state;
    } catch (error) {
      if (error === circular || !hasStatus(error, 'DATA_LOSS')) throw error;
    }
    // Reading the state by itself says what is wrong with it.
    const found = yield* first(selectLineage, row.row_id);
    const place = {
      levels: parseLineage(found?.lineage ?? null),
      custom: row.custom,
      artifacts: row.artifacts,
      stateHash: openHash(row, row, this.#context.cipher),
    };
    return (yield* readState(place, this.#context)).state;
  }

  *artifactsOf({ artifacts: rowId }: PlacedRow): Plan<readonly Artifact[]> {
    if (rowId === null) return emptyState.artifacts;
    if (this.#artifacts?.rowId !== rowId) {
      const value = yield* readArtifactsAt(rowId, this.#context);
      this.#artifacts = { rowId, value };
    }
    return this.#artifacts.value;
  }

  /** The state of a row, if it fits its hash. */
  *#stateOf(row: PlacedRow): Plan<SessionState | undefined> {
    const hash = openHash(row, row, this.#context.cipher);
    const line = this.#lines.get(lineKey(row));
    if (line === undefined || line.history.length < lengthOn(line, row)) return undefined;
    const state = {
      history: line.history.truncate(lengthOn(line, row)),
      custom: yield* this.#customOf(row.custom),
      artifacts: yield* this.artifactsOf(row),
    };
    return isStateHash(state, hash) ? state : undefined;
  }

  /** Reads on in the first of some lines, as many as a page has room for. */
  *#readPage(lines: readonly Line[]): Plan<void> {
    const page: { readonly line: Line; readonly to: number }[] = [];
    let room = pageSize;
    for (const line of lines) {
      if (room <= 0) break;
      const to = Math.min(line.end, line.history.length + room);
      page.push({ line, to });
      room -= to - line.history.length;
    }
    const lists = page.map(({ line, to }) => cut(line.segments, line.history.length, to));
    let found: readonly (readonly Message[])[] = [];
    try {
      found = yield* readMessages(lists, this.#context);
    } catch (error) {
      if (!hasStatus(error, 'DATA_LOSS')) throw error;
    }
    for (const [at, { line, to }] of page.entries()) {
      const messages = found[at] ?? [];
      if (line.history.length + messages.length < to) line.end = 0;
      else line.history = line.history.append(messages);
      // Not all at once when it is needed.
      line.history.chain();
    }
  }

  *#customOf(rowId: number | null): Plan<Json | undefined> {
    const known = this.#custom;
    if (rowId === null) return undefined;
    if (known?.rowId === rowId) return known.value;
    const texts: string[] = [];
    const seen = new Set<number>();
    let at: number | null = rowId;
    while (at !== null && at !== known?.rowId) {
      if (seen.has(at)) throw circular;
      seen.add(at);
      const row: DocumentRow | undefined =
        this.#documents.get(at) ?? (yield* first(selectDocument, at));
      if (row === undefined) return undefined;
      texts.push(this.#context.cipher.decrypt(row.body, documentPlace));
      at = row.prev;
    }
    const value = undamaged(() =>
      at === null || known === undefined
        ? readDocument(rowId, texts)?.value
        : patched(known.value, texts),
    );
    this.#custom = value === undefined ? undefined : { rowId, value };
    return value;
  }
}

function lineKey({ branch, view }: PlacedRow): string {
  return `${branch} ${view}`;
}

/** The number of messages that a snapshot has of its line. */
function lengthOn({ before, from }: Line, { branch, branch_length: length }: PlacedRow): number {
  return branch === null ? 0 : before + Math.max(0, length - from);
}

function* lineOf({ row_id: rowId, branch, branch_parent, view }: PlacedRow): Plan<Line> {
  const line = { segments: [], before: 0, from: 0, history: History.empty, end: 0 };
  if (branch === null) return line;
  const isRoot = view === null && branch_parent === null;
  const lineage = isRoot ? null : ((yield* first(selectLineage, rowId))?.lineage ?? null);
  const { before = [], from = 0 } = undamaged(() => viewOf(parseLineage(lineage))) ?? {};
  const own: Segment = [messageRowId(branch, from), messageRowId(branch, rowsPerBranch)];
  const count = before.reduce((sum, [low, high]) => sum + high - low, 0);
  return { ...line, segments: [...before, own], before: count, from };
}

/** A document with patches applied, the newest of which comes first. */
function patched(from: Json, texts: readonly string[]): Json {
  const operations = texts.toReversed().flatMap((text) => JSON.parse(text) as JsonPatch);
  const to = applyPatch(from, operations);
  carryHashes(from, to);
  return to;
}
