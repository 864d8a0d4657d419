import { isWaymarkError, WaymarkError } from '../../../core/error.ts';
import { carryHashes } from '../../../core/json/hash.ts';
import type { Json } from '../../../core/json/json.ts';
import { applyPatch, type JsonPatch } from '../../../core/json/patch.ts';
import { fileHashesIn } from '../../../protocol/artifacts.ts';
import type { Artifact } from '../../../protocol/state.ts';
import { emptyState, isStateHash } from '../../../session/session-state.ts';
import { readDocument } from '../content/document.ts';
import { checkFile } from '../content/files.ts';
import { documentPlace } from '../content/places.ts';
import { all, first, type Plan, type SqlValue, statement } from '../database/query.ts';
import { readArtifactsAt } from '../history/read-state.ts';
import { readAlone, type TreeRow } from '../history/session-states.ts';
import type { StateContext } from '../history/state-rows.ts';
import { openHash } from '../snapshots/snapshot-row.ts';
import { ChainReader } from './verify-chains.ts';

interface DocumentRow {
  readonly prev: number | null;
  readonly body: SqlValue;
}

const selectDocument = statement<DocumentRow>(
  'verify_document',
  'SELECT prev, body FROM @blobs WHERE row_id = $1',
);
// So small that those of two hundred snapshots are read in a moment.
const selectSmall = statement<DocumentRow & { readonly row_id: number }>(
  'verify_documents',
  (d) =>
    `SELECT row_id, prev, body FROM @blobs WHERE row_id ${d.integers('$1')} AND octet_length(body) <= 500`,
);

/** The parts of a snapshot's state. */
export type StatePointers = Pick<
  TreeRow,
  | 'id'
  | 'row_id'
  | 'owner'
  | 'agent'
  | 'session_id'
  | 'branch'
  | 'branch_length'
  | 'view'
  | 'custom'
  | 'artifacts'
  | 'state_hash'
>;

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
 * Holds states against their hashes. Messages are read in pages and forgotten, and documents are made of the one before by its patch,
 * so that snapshots in the order in which they were written cost what is new in each, in little memory.
 */
export class StateCheck {
  readonly #context: StateContext;
  readonly #chains: ChainReader;
  readonly #files = new Map<string, string | undefined>();
  #chainOf: ReadonlyMap<number, string> = new Map();
  #documents: ReadonlyMap<number, DocumentRow> = new Map();
  #custom: Read<Json> | undefined;
  #artifacts: Read<readonly Artifact[]> | undefined;

  constructor(context: StateContext) {
    this.#context = context;
    this.#chains = new ChainReader(context);
  }

  /** Reads the histories and small documents of snapshots, which are checked next. */
  *expect(rows: readonly StatePointers[]): Plan<void> {
    this.#chainOf = yield* this.#chains.chainsOf(rows);
    const documents = new Set(rows.map((row) => row.custom).filter((rowId) => rowId !== null));
    if (documents.size === 0) return;
    const found = yield* all(selectSmall, JSON.stringify([...documents]));
    this.#documents = new Map(found.map((row) => [row.row_id, row]));
  }

  /** The problem of a state; `undefined` when there is none. */
  *check(row: StatePointers): Plan<string | undefined> {
    try {
      if (yield* this.#fits(row)) return undefined;
    } catch (error) {
      if (error === circular) return circular.message;
      throw error;
    }
    // The whole state says what is wrong with it.
    const read = yield* readAlone(row, this.#context);
    return read.kind === 'damaged' ? read.message : undefined;
  }

  /** The problems of the files that a state names. Each file is read once. */
  *checkFiles(row: StatePointers): Plan<readonly string[]> {
    if (row.artifacts === null) return [];
    const problems: string[] = [];
    for (const hash of yield* this.#filesOf(row.artifacts)) {
      if (!this.#files.has(hash)) {
        this.#files.set(hash, yield* checkFile(hash, this.#context.cipher));
      }
      const problem = this.#files.get(hash);
      if (problem !== undefined) problems.push(problem);
    }
    return problems;
  }

  *#filesOf(rowId: number): Plan<readonly string[]> {
    try {
      return fileHashesIn(yield* this.#artifactsOf(rowId));
    } catch (error) {
      // A list that cannot be read is a fault by itself.
      if (isWaymarkError(error) || error instanceof SyntaxError) return [];
      throw error;
    }
  }

  *#fits(row: StatePointers): Plan<boolean> {
    try {
      const hash = openHash(row, row, this.#context.cipher);
      const chain = this.#chainOf.get(row.row_id);
      if (chain === undefined) return false;
      const custom = yield* this.#customOf(row.custom);
      const artifacts = yield* this.#artifactsOf(row.artifacts);
      return isStateHash({ history: { chain: () => chain }, custom, artifacts }, hash);
    } catch (error) {
      if (error === circular) throw error;
      if (isWaymarkError(error) || error instanceof SyntaxError) return false;
      throw error;
    }
  }

  *#customOf(rowId: number | null): Plan<Json | undefined> {
    const known = this.#custom;
    if (rowId === null || known?.rowId === rowId) {
      return rowId === null ? undefined : known?.value;
    }
    const texts: string[] = [];
    let at: number | null = rowId;
    const seen = new Set<number>();
    while (at !== null && at !== known?.rowId) {
      if (seen.has(at)) throw circular;
      seen.add(at);
      const row: DocumentRow | undefined =
        this.#documents.get(at) ?? (yield* first(selectDocument, at));
      if (row === undefined) return undefined;
      texts.push(this.#context.cipher.decrypt(row.body, documentPlace));
      at = row.prev;
    }
    const value =
      at === null || known === undefined
        ? readDocument(rowId, texts)?.value
        : patched(known.value, texts);
    this.#custom = value === undefined ? undefined : { rowId, value };
    return value;
  }

  *#artifactsOf(rowId: number | null): Plan<readonly Artifact[]> {
    if (rowId === null) return emptyState.artifacts;
    if (this.#artifacts?.rowId !== rowId) {
      const value = yield* readArtifactsAt(rowId, this.#context);
      this.#artifacts = { rowId, value };
    }
    return this.#artifacts.value;
  }
}

/** A document with patches applied, the newest of which comes first. */
function patched(from: Json, texts: readonly string[]): Json {
  const operations = texts.toReversed().flatMap((text) => JSON.parse(text) as JsonPatch);
  const to = applyPatch(from, operations);
  carryHashes(from, to);
  return to;
}
