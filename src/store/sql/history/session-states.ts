import { isWaymarkError } from '../../../core/error.ts';
import type { Totals } from '../../../protocol/usage.ts';
import { isStateHash, type SessionState } from '../../../session/session-state.ts';
import { all, first, type Plan, statement } from '../database/query.ts';
import { orphanedColumn } from '../snapshots/locate.ts';
import {
  type HashRow,
  openHash,
  type SnapshotRow,
  snapshotColumns,
} from '../snapshots/snapshot-row.ts';
import { fromTotals } from '../values/codes.ts';
import { activeEnds, lineageTable, parseLineage, selectLineage } from './lineage.ts';
import { readState } from './read-state.ts';
import type { StateContext } from './state-rows.ts';

/** A snapshot of a session with where its state lies. */
export interface TreeRow extends SnapshotRow {
  readonly now: number;
  readonly orphaned: number;
  readonly row_id: number;
  readonly parent: number | null;
  readonly branch: number | null;
  readonly branch_length: number;
  readonly view: number | null;
  readonly length: number;
  readonly custom: number | null;
  readonly artifacts: number | null;
  readonly totals: string | null;
}

const selectTree = statement<TreeRow>(
  'tree_rows',
  (d) => `
    WITH RECURSIVE ${lineageTable(d, 'active', `@sessions h ${activeEnds} AND h.row_id = $1`)}
    SELECT ${d.now} AS now, ${snapshotColumns}, ${orphanedColumn('s', 'p')}, s.row_id, s.parent, s.branch,
      s.branch_length, s.view, s.length, s.custom, s.artifacts, s.totals
    FROM @snapshots s JOIN @sessions z ON z.row_id = s.session
    LEFT JOIN @snapshots p ON p.row_id = s.parent
    LEFT JOIN @runs r ON r.own_snapshot = s.row_id AND r.session = z.row_id
    WHERE s.session = $1 ORDER BY CASE WHEN s.idx IS NULL THEN 1 ELSE 0 END, s.idx, s.row_id`,
);
/** The snapshots and checkpoints of a session: the listed ones by index, then the others. */
export function* treeOf(session: number): Plan<readonly TreeRow[]> {
  return yield* all(selectTree, session);
}

/** The result of reading a snapshot's state. */
export type ReadResult =
  | { readonly kind: 'state'; readonly state: SessionState }
  | { readonly kind: 'damaged'; readonly message: string };

/** Reads states of one session, each message once: snapshots on one branch under one view share the longest of them. */
export class StateReader {
  readonly #context: StateContext;
  readonly #longest = new Map<string, TreeRow>();
  readonly #read = new Map<string, ReadResult>();

  constructor(rows: readonly TreeRow[], context: StateContext) {
    this.#context = context;
    for (const row of rows) {
      const known = this.#longest.get(keyOf(row));
      if (known === undefined || row.length > known.length) this.#longest.set(keyOf(row), row);
    }
  }

  /** The state of a row, held against its hash. */
  *read(row: TreeRow): Plan<ReadResult> {
    const longest = yield* this.#longestOf(row);
    if (longest.kind === 'damaged') return yield* this.#readAlone(row);
    const state = { ...longest.state, history: longest.state.history.truncate(row.length) };
    const hash = this.#hashOf(row);
    if (hash !== undefined && isStateHash(state, hash)) return { kind: 'state', state };
    return yield* this.#readAlone(row);
  }

  *#longestOf(row: TreeRow): Plan<ReadResult> {
    const key = keyOf(row);
    const known = this.#read.get(key);
    if (known !== undefined) return known;
    const read = yield* this.#readAlone(this.#longest.get(key) ?? row);
    this.#read.set(key, read);
    return read;
  }

  #hashOf(row: TreeRow): string | undefined {
    try {
      return openHash(row, row, this.#context.cipher);
    } catch {
      // Reading the row alone says what is wrong.
      return undefined;
    }
  }

  *#readAlone(row: TreeRow): Plan<ReadResult> {
    return yield* readAlone(row, this.#context);
  }
}

/** Reads the state of one row, and holds it against its hash. */
export function* readAlone(
  row: HashRow &
    Pick<TreeRow, 'row_id' | 'custom' | 'artifacts' | 'owner' | 'agent' | 'session_id'>,
  context: StateContext,
): Plan<ReadResult> {
  const found = yield* first(selectLineage, row.row_id);
  try {
    const place = {
      levels: parseLineage(found?.lineage ?? null),
      custom: row.custom,
      artifacts: row.artifacts,
      stateHash: openHash(row, row, context.cipher),
    };
    const { state } = yield* readState(place, context);
    return { kind: 'state', state };
  } catch (error) {
    if (isWaymarkError(error) && error.status === 'DATA_LOSS') {
      return { kind: 'damaged', message: error.message };
    }
    throw error;
  }
}

// Documents are shared as well where they are the same; a session whose documents change is read document by document.
function keyOf({ branch, view, custom, artifacts }: TreeRow): string {
  return `${branch} ${view} ${custom} ${artifacts}`;
}

export function totalsOf({ totals }: TreeRow): Totals | undefined {
  return fromTotals(totals);
}
