import { WaymarkError } from '../../../core/error.ts';
import type { StateWrite } from '../../contract/store.ts';
import type { DocumentRef } from '../content/document.ts';
import type { ManifestRef } from '../content/manifest.ts';
import { writeArtifacts, writeCustom } from '../content/write-documents.ts';
import { insertion, one, type Plan, run, statement } from '../database/query.ts';
import type { Location } from './location.ts';
import {
  messageRowId,
  otherBranches,
  rowsPerBranch,
  toStored,
  type View,
  viewOfRewrite,
} from './segments.ts';
import { type StateContext, type StateRows, stateRows } from './state-rows.ts';

const insertBranch = insertion(
  'place_branch',
  'INSERT INTO @branches(session, parent, fork, fork_view, fork_snapshot) VALUES($1, $2, $3, $4, $5)',
);
// A prune may have shortened the path before the base since the base was read.
const insertView = statement<{ row_id: number; common: number }>(
  'place_view',
  `INSERT INTO @views(branch, own_from, base, common) VALUES($1, $2, $3,
     (SELECT MIN(c.common) FROM (SELECT CAST($4 AS INTEGER) AS common
      UNION ALL SELECT v.common FROM @views v WHERE v.row_id = $5) c))
   RETURNING row_id, common`,
);
const insertViewRef = statement(
  'place_view_ref',
  'INSERT INTO @view_refs(branch, view, view_branch) VALUES($1, $2, $3)',
);
const insertMessage = statement(
  'place_message',
  `INSERT INTO @messages(id, body) VALUES(CAST($1 AS BIGINT) * ${rowsPerBranch} + CAST($2 AS BIGINT), $3)`,
);

export const stateStatements = {
  frequent: [insertMessage],
  others: [insertBranch, insertView, insertViewRef],
};

export interface StatePosition {
  readonly session: number;
  /** The snapshot that was placed last in the session. */
  readonly branchEnd: number | null;
  /** The listed snapshot that the new one hangs on; `null` for the first of a session. */
  readonly parent: number | null;
  /** A row that goes away with this write: a checkpoint, or a head that was not listed. */
  readonly replaces: number | null;
  /** Whether what it grew from is still where it was. */
  readonly hasBase: boolean;
  /** Whether the state may continue in place: a snapshot that did not succeed leaves the line to the next one. */
  readonly mayGoOn: boolean;
}

export interface StoredState {
  readonly view: View;
  readonly viewRowId: number | null;
  readonly common: number | undefined;
  readonly length: number;
  readonly custom: DocumentRef | undefined;
  readonly artifacts: ManifestRef | undefined;
}

/** Where the snapshot that a state grew from lies now; `null` when it is gone. */
export interface FoundBase {
  readonly from_branch: number | null;
  readonly from_branch_length: number | null;
}

/** Whether a base is still where its note says. */
export function isStillThere(base: Location | undefined, found: FoundBase): boolean {
  if (base?.view === undefined) return false;
  return found.from_branch === base.view.branch && found.from_branch_length === base.view.to;
}

/**
 * Puts a state into its tables. It continues in place when its base was placed last and is its parent; else it
 * begins a new branch, which shares the base's rows.
 */
export function* planState(
  write: StateWrite,
  prepared: StateRows,
  spot: StatePosition,
  context: StateContext,
): Plan<StoredState> {
  // Write everything when the base was removed meanwhile.
  const isLost = prepared.base !== undefined && !spot.hasBase;
  const rows = isLost ? stateRows({ state: write.state }, context) : prepared;
  const { base } = rows;
  const start =
    base !== undefined && isInPlace(base, spot) ? inPlace(base) : yield* onNewBranch(rows, spot);
  const { view, viewRowId, common } = yield* writeMessages(rows, start);
  const custom = yield* writeCustom(rows.custom);
  const artifacts = yield* writeArtifacts(rows.artifacts);
  return { view, viewRowId, common, length: rows.length, custom, artifacts };
}

/** Whether a state that grew from here continues in place. */
function isInPlace(
  base: Location,
  { branchEnd, parent, replaces, mayGoOn }: StatePosition,
): boolean {
  if (!mayGoOn || branchEnd !== base.snapshot) return false;
  return base.snapshot === parent || (base.snapshot === replaces && base.lineage === parent);
}

interface Start {
  readonly branch: number;
  readonly row: number;
  readonly before: View['before'];
  readonly from: number;
  readonly viewRowId: number | null;
}

const noView: View = { before: [], branch: 0, from: 0, to: 0 };

function inPlace({ view, viewRowId }: Location): Start {
  const { branch, to, before, from } = view ?? noView;
  return { branch, row: to, before, from, viewRowId };
}

// After a rewrite the view says which of the parent's rows it needs; the branch itself needs none.
function* onNewBranch(
  { base, rewrite }: StateRows,
  { session, parent }: StatePosition,
): Plan<Start> {
  const { view } = base ?? {};
  const fork = rewrite === undefined ? (view?.to ?? null) : null;
  const forkView = rewrite === undefined ? (base?.viewRowId ?? null) : null;
  const values = [session, view?.branch ?? null, fork, forkView, parent];
  const { row_id: rowId } = yield* one(insertBranch, ...values);
  const before = view === undefined ? [] : beforeChild(view);
  return { branch: rowId, row: 0, before, from: 0, viewRowId: null };
}

/** Segments before the rows of a branch that leaves another one here. */
function beforeChild({ before, branch, from, to }: View): View['before'] {
  return to > from ? [...before, [messageRowId(branch, from), messageRowId(branch, to)]] : before;
}

function* writeMessages(
  { bodies, rewrite, base }: StateRows,
  { branch, row, before, from, viewRowId }: Start,
): Plan<Pick<StoredState, 'view' | 'viewRowId' | 'common'>> {
  checkRoom(row + bodies.length);
  let at = row;
  for (const body of bodies) yield* run(insertMessage, branch, at++, body);
  if (rewrite === undefined) {
    return { view: { before, branch, from, to: at }, viewRowId, common: base?.common };
  }
  const view = viewOfRewrite(rewrite, branch, row, bodies.length);
  const stored = yield* one(
    insertView,
    branch,
    view.from,
    toStored(view),
    commonOf(rewrite.common, base),
    base?.common === undefined ? null : base.viewRowId,
  );
  for (const other of otherBranches(view)) yield* run(insertViewRef, other, stored.row_id, branch);
  return { view, viewRowId: stored.row_id, common: stored.common };
}

/** How much of the path before is left at the beginning, when what it grew from is not on the path itself. */
function commonOf(common: number, base: Location | undefined): number {
  return Math.min(common, base?.common ?? Number.POSITIVE_INFINITY);
}

/** Refuses a history for which there are no more row numbers. */
function checkRoom(rows: number): void {
  if (rows <= rowsPerBranch) return;
  throw new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `A session's history holds at most ${rowsPerBranch} messages. Start a new session.`,
  );
}
