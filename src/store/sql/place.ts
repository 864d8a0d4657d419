import { WaymarkError } from '../../core/error.ts';
import type { StateWrite } from '../../session/store.ts';
import { hexOf } from './bytes.ts';
import { type DocumentRef, type DocumentWrite, documentRef } from './document.ts';
import type { Location } from './location.ts';
import type { ManifestRef, ManifestWrite } from './manifest.ts';
import { first, one, type Plan, run, type SqlValue, statement } from './query.ts';
import {
  otherBranches,
  rowId,
  rowsPerBranch,
  toStored,
  type View,
  viewOfRewrite,
} from './segments.ts';
import { type StateContext, type StateRows, stateRows } from './state-rows.ts';

const selectBase = statement<{ branch: number | null; upto: number; tip: number | null }>(
  'place_base',
  (d) => `
    SELECT s.branch, s.upto, b.tip FROM @snapshots s JOIN @branches b ON b.no = s.branch
    WHERE s.no = $1 ${d.lock('b')}`,
);
const insertBranch = statement<{ no: number }>(
  'place_branch',
  'INSERT INTO @branches(parent, fork, fork_view, fork_snapshot) VALUES($1, $2, $3, $4) RETURNING no',
);
const updateTip = statement('place_tip', 'UPDATE @branches SET tip = $2 WHERE no = $1');
const insertView = statement<{ no: number }>(
  'place_view',
  'INSERT INTO @views(branch, own_from, base, common) VALUES($1, $2, $3, $4) RETURNING no',
);
const insertViewRef = statement(
  'place_view_ref',
  'INSERT INTO @view_refs(branch, view) VALUES($1, $2)',
);
const insertMessage = statement('place_message', 'INSERT INTO @messages(id, body) VALUES($1, $2)');
const insertPatch = statement<{ no: number }>(
  'place_patch',
  'INSERT INTO @blobs(prev, body) VALUES($1, $2) RETURNING no',
);
// An update that changes nothing: the row is returned, and held, also when it was there.
const insertBlob = statement<{ no: number }>(
  'place_blob',
  `INSERT INTO @blobs(hash, body) VALUES($1, $2)
   ON CONFLICT(hash) WHERE hash IS NOT NULL DO UPDATE SET hash = excluded.hash RETURNING no`,
);
const insertPart = statement(
  'place_part',
  'INSERT INTO @blob_parts(list, part) VALUES($1, $2) ON CONFLICT DO NOTHING',
);
const shareBlobs = statement('place_share_blobs', (d) => d.shareBlobs);

/** What a state that is written hangs on. */
export interface Lineage {
  /** The listed snapshot before it; `null` for the first of a session. */
  readonly parent: number | null;
  /** A row that goes away with this write: a checkpoint, or a head that was not listed. */
  readonly replaces: number | null;
}

/** Where a state was put. */
export interface Placed {
  readonly view: View;
  readonly viewNo: number | null;
  readonly common: number | undefined;
  readonly length: number;
  readonly custom: DocumentRef | undefined;
  readonly artifacts: ManifestRef | undefined;
}

/**
 * Puts a state into its tables. It goes on in place when its base is the last snapshot on its branch and is what it hangs
 * on; else it begins a branch of its own, which shares the base's rows.
 */
export function* placeState(
  write: StateWrite,
  prepared: StateRows,
  { parent, replaces }: Lineage,
  context: StateContext,
): Plan<Placed> {
  const found = prepared.base && (yield* baseOf(prepared.base));
  const rows =
    prepared.base !== undefined && found === undefined ? afresh(write, context) : prepared;
  const { base } = rows;
  const isNext =
    base !== undefined &&
    found?.tip === base.snapshot &&
    (base.snapshot === parent || (base.snapshot === replaces && base.lineage === parent));
  const isRewritten = rows.rewrite !== undefined;
  const start = isNext ? inPlace(base) : yield* onNewBranch(base, parent, isRewritten);
  const { view, viewNo, common } = yield* writeMessages(rows, start, isNext);
  const custom = yield* writeCustom(rows.custom);
  const artifacts = yield* writeArtifacts(rows.artifacts);
  return { view, viewNo, common, length: rows.length, custom, artifacts };
}

/** Everything anew: the base has gone meanwhile. */
function afresh({ state }: StateWrite, context: StateContext): StateRows {
  return stateRows({ state }, context);
}

function* baseOf(base: Location): Plan<{ readonly tip: number | null } | undefined> {
  const row = yield* first(selectBase, base.snapshot);
  const isThere = row?.branch === base.view?.branch && row?.upto === base.view?.upto;
  return isThere ? row : undefined;
}

interface Start {
  readonly branch: number;
  readonly row: number;
  readonly before: View['before'];
  readonly from: number;
  readonly viewNo: number | null;
  readonly common: number | undefined;
}

function inPlace({ view, viewNo, common }: Location): Start {
  const { branch, upto, before, from } = view ?? noView;
  return { branch, row: upto, before, from, viewNo, common };
}

const noView: View = { before: [], branch: 0, from: 0, upto: 0 };

// After a rewrite the view says which of the parent's rows it needs; the branch itself needs none.
function* onNewBranch(
  base: Location | undefined,
  parent: number | null,
  isRewritten: boolean,
): Plan<Start> {
  const { view } = base ?? {};
  const fork = isRewritten ? null : (view?.upto ?? null);
  const forkView = isRewritten ? null : (base?.viewNo ?? null);
  const { no } = yield* one(insertBranch, view?.branch ?? null, fork, forkView, parent);
  return {
    branch: no,
    row: 0,
    before: view === undefined ? [] : beforeChild(view),
    from: 0,
    viewNo: null,
    common: base?.common,
  };
}

/** What stands before the rows of a branch that leaves another one here. */
function beforeChild({ before, branch, from, upto }: View): View['before'] {
  return upto > from ? [...before, [rowId(branch, from), rowId(branch, upto)]] : before;
}

function* writeMessages(
  { bodies, rewrite, base }: StateRows,
  start: Start,
  isNext: boolean,
): Plan<Pick<Placed, 'view' | 'viewNo' | 'common'>> {
  const { branch, row } = start;
  if (row + bodies.length > rowsPerBranch) throw tooLong();
  let at = row;
  for (const body of bodies) yield* run(insertMessage, rowId(branch, at++), body);
  if (rewrite === undefined) {
    const { before, from, viewNo } = start;
    const view = { before, branch, from, upto: at };
    return { view, viewNo, common: isReplaced(base) ? start.common : undefined };
  }
  const view = viewOfRewrite(rewrite, branch, row, bodies.length);
  const common = Math.min(rewrite.common, (isNext ? start.common : base?.common) ?? Infinity);
  const stored = yield* one(insertView, branch, view.from, toStored(view), common);
  for (const other of otherBranches(view)) yield* run(insertViewRef, other, stored.no);
  return { view, viewNo: stored.no, common };
}

function isReplaced(base: Location | undefined): boolean {
  return base !== undefined && base.lineage !== base.snapshot;
}

function tooLong(): WaymarkError {
  return new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `A session's history holds at most ${rowsPerBranch} messages. Start a new session.`,
  );
}

function* writeCustom(write: DocumentWrite): Plan<DocumentRef | undefined> {
  switch (write.kind) {
    case 'none':
      return undefined;
    case 'same':
      return write.ref;
    case 'patch': {
      const { no } = yield* one(insertPatch, write.to.no, write.body);
      return documentRef(write, no);
    }
    case 'whole':
      return documentRef(write, yield* writeBlob(write.digest, write.body));
  }
}

function* writeBlob(digest: Uint8Array, body: SqlValue): Plan<number> {
  yield* run(shareBlobs);
  const { no } = yield* one(insertBlob, digest, body);
  return no;
}

function* writeArtifacts(write: ManifestWrite): Plan<ManifestRef | undefined> {
  if (write.kind === 'none') return undefined;
  if (write.kind === 'same') return write.ref;
  const parts = new Map(write.known);
  for (const { digest, body } of write.fresh) {
    parts.set(hexOf(digest), yield* writeBlob(digest, body));
  }
  const no = yield* writeBlob(write.digest, write.body);
  for (const part of parts.values()) yield* run(insertPart, no, part);
  return { no, parts };
}

/** Says that a snapshot is now the last one on its branch. */
export function* setTip(branch: number, snapshot: number): Plan<void> {
  yield* run(updateTip, branch, snapshot);
}
