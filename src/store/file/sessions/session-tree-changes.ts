import type { Json } from '../../../core/json/json.ts';
import type { JsonPatch } from '../../../core/json/patch.ts';
import { isStateHash, type SessionState } from '../../../session/session-state.ts';
import type { StateBase } from '../../contract/store.ts';
import type { SessionRow, SnapshotRow, Tables } from '../../memory/tables.ts';
import {
  isAsSaved,
  iso,
  type JournalLine,
  type SnapshotLine,
  toSessionLine,
  toSnapshotLine,
} from './journal-line.ts';
import type { SessionTree } from './session-tree.ts';
import { type NamedState, toDelta } from './state-delta.ts';

/** What is known of an operation beyond what can be seen from the session's row. */
export interface Trace {
  /** The snapshot that it named. */
  readonly snapshotId?: string | undefined;
  /** What the caller's state grew from. */
  readonly base?: StateBase | undefined;
  /** How the custom state has changed since. */
  readonly customPatch?: JsonPatch | undefined;
  /** The run that it has ended. */
  readonly ended?: string | undefined;
  /** What that run came to, for those who ask again under its request ids. */
  readonly receipt?: Json | undefined;
}

/**
 * What the journal does not know of a session yet, as a line; `undefined`: nothing. Only rows that an operation can have
 * touched are read, so that a change costs the same however long the session is.
 */
export function changeOf(
  tables: Tables,
  tree: SessionTree,
  session: SessionRow,
  trace: Trace,
): JournalLine | undefined {
  const saved = tree.saved.get(session.id);
  const line = toSessionLine(session, saved);
  const rows = touched(tables, tree, session, trace);
  const isThere = (row: SnapshotRow): boolean => tables.snapshots.get(row.id) === row;
  const snapshots: SnapshotLine[] = [];
  for (const row of rows.filter(isThere)) {
    const saved = tree.rows.get(row.id)?.was;
    if (saved !== undefined && isAsSaved(row, saved)) continue;
    const snapshot = toSnapshotLine(row);
    const isSameState = saved?.stateHash === row.stateHash;
    const state = isSameState ? undefined : toDelta(row.state, basesOf(tree, row, rows, trace));
    snapshots.push(state === undefined ? snapshot : { ...snapshot, state });
  }
  const dropped = rows.filter((row) => !isThere(row)).map((row) => row.id);
  const receipts = receiptsOf(tables, trace);
  const isSameSession = saved !== undefined && Object.keys(line).length === 1;
  if (isSameSession && snapshots.length + dropped.length + receipts.length === 0) {
    return undefined;
  }
  return {
    session: line,
    ...(snapshots.length === 0 ? {} : { snapshots }),
    ...(dropped.length === 0 ? {} : { dropped }),
    ...(trace.ended === undefined ? {} : { ended: trace.ended }),
    ...(receipts.length === 0 ? {} : { receipts }),
  };
}

/** What is written of the run that has ended under request ids. */
export function receiptsOf(
  { clock }: Tables,
  { ended, receipt }: Pick<Trace, 'ended' | 'receipt'>,
): NonNullable<JournalLine['receipts']> {
  if (ended === undefined || receipt === undefined) return [];
  return [{ run: ended, at: iso(clock.now()), value: receipt }];
}

/** The rows that may have changed: what is new in the list, the heads before and after, and what was named. */
function touched(
  tables: Tables,
  tree: SessionTree,
  session: SessionRow,
  { snapshotId = '', ended = '' }: Trace,
): readonly SnapshotRow[] {
  const saved = tree.saved.get(session.id);
  const rows = new Set([
    ...session.listed.slice(saved?.listed ?? 0),
    tables.snapshots.get(snapshotId),
    tables.snapshots.get(ended),
    saved?.head,
    session.head,
    session.run?.row,
  ]);
  const own = [...rows]
    .filter((row) => row?.session === session)
    .filter((row) => row !== undefined);
  return own.sort((a, b) => orderOf(a) - orderOf(b));
}

// Parents come before what hangs on them, and nothing hangs on what is not listed.
function orderOf({ index }: SnapshotRow): number {
  return index < 0 ? Number.MAX_SAFE_INTEGER : index;
}

/** What a state may be written as a difference to, the likeliest first. States are read only when they are needed. */
function basesOf(
  tree: SessionTree,
  row: SnapshotRow,
  writing: readonly SnapshotRow[],
  { base, customPatch }: Trace,
): readonly NamedState[] {
  const { session, parent } = row;
  const before = writing.slice(0, writing.indexOf(row));
  const likely = new Set([
    parent,
    tree.saved.get(session.id)?.head,
    session.run?.base,
    tree.rows.get(session.forkedFrom?.snapshotId ?? '')?.row,
  ]);
  const rows = [...likely]
    .filter((each) => each !== undefined)
    .filter((each) => isSaved(tree, each) || before.includes(each));
  const grown = isSavedState(tree, base) ? [toNamed(base, customPatch)] : [];
  return [...grown, ...rows.map((each) => toNamed(each))];
}

/** Whether the journal has this row with the state that it has now. */
function isSaved(tree: SessionTree, row: SnapshotRow): boolean {
  return tree.rows.get(row.id)?.was?.stateHash === row.stateHash;
}

/** Whether the journal has what the caller's state grew from. A checkpoint has the id of its run, but is not its snapshot. */
function isSavedState(tree: SessionTree, base: StateBase | undefined): base is StateBase {
  if (base === undefined) return false;
  const saved = tree.rows.get(base.snapshotId)?.was?.stateHash;
  return saved !== undefined && isStateHash(base.state, saved);
}

function toNamed(base: StateBase | SnapshotRow, customPatch?: JsonPatch): NamedState {
  return new Named('snapshotId' in base ? base.snapshotId : base.id, base, customPatch);
}

class Named implements NamedState {
  readonly name: string;
  readonly customPatch: JsonPatch | undefined;
  readonly #base: StateBase | SnapshotRow;

  constructor(name: string, base: StateBase | SnapshotRow, customPatch?: JsonPatch) {
    this.name = name;
    this.customPatch = customPatch;
    this.#base = base;
  }

  get state(): SessionState {
    return this.#base.state;
  }
}
