import { isSnapshotId } from '../../session/ids.ts';
import type { Committed, CommitWrite, RunEvent, RunRef } from '../../session/store.ts';
import { type DocumentWrite, documentRef } from '../sql/content/document.ts';
import type { ManifestRef, ManifestWrite } from '../sql/content/manifest.ts';
import type { Vault } from '../sql/content/vault.ts';
import { type SqlValue, type Statement, statement } from '../sql/database/query.ts';
import { asLocation, type Location } from '../sql/history/location.ts';
import { beforeChild, checkRoom, commonOf } from '../sql/history/place.ts';
import { otherBranches, toStored, type View, viewOfRewrite } from '../sql/history/segments.ts';
import { type StateContext, type StateRows, stateRows } from '../sql/history/state-rows.ts';
import type { CommitResult } from '../sql/runs/commit.ts';
import { outcomeValues, snapshotOf } from '../sql/runs/commit-row.ts';
import { uuidBytes } from '../sql/values/bytes.ts';
import type { PostgresDatabase } from './database.ts';
import { type CommitParts, type CommitText, commitText } from './quick-commit-text.ts';

interface CommittedRow {
  readonly now: number;
  readonly no: number;
  readonly session_id: string;
  readonly created_at: number;
  readonly line: number | null;
  readonly line_id: Uint8Array | null;
  readonly idx: number | null;
  readonly in_place: number;
  readonly branch: number;
  readonly view: number | null;
  readonly custom: number | null;
  readonly artifacts: number | null;
  readonly new_parts: string | null;
  readonly discarded: number;
}

interface CommitStatement {
  readonly statement: Statement<CommittedRow>;
  readonly values: CommitText['values'];
}

/** Commits in one round trip; `undefined` when it is not the usual case. */
export type QuickCommit = (
  ref: RunRef,
  write: CommitWrite,
  options: { readonly hasJournal: boolean },
) => Promise<CommitResult | undefined>;

/** The quick commit of a database. A statement for each combination of parts is made when it is first needed. */
export function createQuickCommit(db: PostgresDatabase, context: StateContext): QuickCommit {
  const statements = new Map<string, CommitStatement>();
  const commitOf = (parts: CommitParts): CommitStatement => {
    const names = (Object.keys(parts) as (keyof CommitParts)[]).filter((name) => parts[name]);
    const name = ['quick_commit', ...names].join('_');
    const known = statements.get(name);
    if (known !== undefined) return known;
    const { text, values } = commitText(db.dialect, parts);
    const made = { statement: statement<CommittedRow>(name, text), values };
    statements.set(name, made);
    return made;
  };
  return async (ref, write, { hasJournal }) => {
    if (write.status !== 'succeeded' || !isSnapshotId(ref.runId)) return undefined;
    if (write.parentId !== undefined && !isSnapshotId(write.parentId)) return undefined;
    const events = eventValues(write.events ?? [], context.vault);
    const rows = stateRows(write, context);
    if (events === undefined || (write.base !== undefined && rows.base === undefined)) {
      return undefined;
    }
    checkRoom((rows.base?.view?.upto ?? 0) + rows.bodies.length);
    const { statement: commitTurn, values } = commitOf({
      view: rows.rewrite !== undefined,
      custom: rows.custom.kind === 'patch' || rows.custom.kind === 'whole',
      artifacts: rows.artifacts.kind === 'whole',
      journal: hasJournal || events.eventBody !== null,
      own: write.end && write.event === 'detach' && write.snapshotId === ref.runId,
    });
    const named = { ...turnValues(ref, write, context), ...stateValues(rows), ...events };
    const [row] = await db.query(commitTurn, values(named));
    if (row === undefined) return undefined;
    return { committed: committedOf(write, rows, row, context), discards: row.discarded > 0 };
  };
}

function turnValues(ref: RunRef, write: CommitWrite, context: StateContext) {
  const [turn, event, status, finish, hash, usage, totals, error] = outcomeValues(write, context);
  return {
    run: uuidBytes(ref.runId),
    attempt: ref.attempt,
    snapshot: uuidBytes(write.snapshotId),
    parent: write.parentId === undefined ? null : uuidBytes(write.parentId),
    isListed: String(write.listed !== false),
    isEnd: String(write.end),
    isMidTurn: String(write.event === 'toolIterationEnd'),
    ...{ turn, event, status, finish, hash, usage, totals, error },
  };
}

function stateValues(rows: StateRows) {
  return {
    ...baseValues(rows.base),
    bodies: rows.bodies.map(String),
    length: rows.length,
    ...viewValues(rows),
    ...customValues(rows.custom),
    ...listValues(rows.artifacts),
  };
}

function baseValues(base: Location | undefined) {
  return {
    from: base?.snapshot ?? null,
    fromLineage: base?.lineage ?? null,
    fromBranch: base?.view?.branch ?? null,
    fromUpto: base?.view?.upto ?? null,
    fromView: base?.viewNo ?? null,
  };
}

// A branch that does not exist yet is written as 0, which means a view's own branch.
function viewValues({ rewrite, base, bodies }: StateRows) {
  const here = rewrite && base?.view && viewOfRewrite(rewrite, base.view.branch, base.view.upto, 0);
  const fresh = rewrite && viewOfRewrite(rewrite, 0, 0, bodies.length);
  return {
    ownFromHere: here?.from ?? null,
    ownFromNew: fresh?.from ?? null,
    viewHere: here === undefined ? null : toStored(here),
    viewNew: fresh === undefined ? null : toStored(fresh),
    common: rewrite === undefined ? null : commonOf(rewrite.common, base),
    viewRefs: fresh === undefined ? [] : otherBranches(fresh),
  };
}

function customValues(write: DocumentWrite) {
  const isWritten = write.kind === 'patch' || write.kind === 'whole';
  return {
    custom: write.kind === 'same' ? write.ref.no : null,
    customBody: isWritten ? write.body : null,
    customHash: write.kind === 'whole' ? write.digest : null,
    customPrev: write.kind === 'patch' ? write.to.no : null,
  };
}

function listValues(write: ManifestWrite) {
  const whole = write.kind === 'whole' ? write : undefined;
  return {
    list: write.kind === 'same' ? write.ref.no : null,
    listBody: whole?.body ?? null,
    listHash: whole?.digest ?? null,
    partHashes: (whole?.fresh ?? []).map(({ digest }) => digest),
    partBodies: (whole?.fresh ?? []).map(({ body }) => String(body)),
    knownParts: [...(whole?.known.values() ?? [])],
  };
}

/** Events as one row; `undefined` when they are of several attempts. */
function eventValues(
  events: readonly RunEvent[],
  vault: Vault,
): Record<'eventAttempt' | 'eventSeq' | 'eventLast' | 'eventBody', SqlValue> | undefined {
  const [begin] = events;
  const end = events.at(-1);
  if (begin === undefined || end === undefined) {
    return { eventAttempt: null, eventSeq: null, eventLast: null, eventBody: null };
  }
  if (begin.attempt !== end.attempt) return undefined;
  const body = vault.seal(JSON.stringify(events.map(({ seq, chunk }) => [seq, chunk])));
  return {
    eventAttempt: begin.attempt,
    eventSeq: begin.seq,
    eventLast: end.seq,
    eventBody: body,
  };
}

function committedOf(
  write: CommitWrite,
  rows: StateRows,
  row: CommittedRow,
  { database }: StateContext,
): Committed {
  const { rewrite, base } = rows;
  const isListed = write.listed !== false;
  const common = rewrite === undefined ? base?.common : commonOf(rewrite.common, base);
  const location = asLocation({
    database,
    snapshot: row.no,
    lineage: isListed ? row.no : row.line,
    view: viewOf(rows, row),
    viewNo: row.view,
    common: isListed ? undefined : common,
    custom: documentRef(rows.custom, row.custom),
    artifacts: manifestRef(rows.artifacts, row),
  });
  return {
    base: { snapshotId: write.snapshotId, state: write.state, ref: location },
    snapshot: snapshotOf(write, {
      createdAt: row.created_at,
      now: row.now,
      sessionId: row.session_id,
      parentId: row.line_id,
      index: row.idx,
      orphaned: false,
    }),
  };
}

function viewOf({ rewrite, base, bodies }: StateRows, { in_place, branch }: CommittedRow): View {
  const before = base?.view;
  const from = in_place === 1 ? (before?.upto ?? 0) : 0;
  if (rewrite !== undefined) return viewOfRewrite(rewrite, branch, from, bodies.length);
  if (in_place === 1 && before !== undefined) return { ...before, upto: from + bodies.length };
  const shared = before === undefined ? [] : beforeChild(before);
  return { before: shared, branch, from: 0, upto: bodies.length };
}

function manifestRef(write: ManifestWrite, row: CommittedRow): ManifestRef | undefined {
  if (write.kind === 'same') return write.ref;
  if (write.kind === 'none' || row.artifacts === null) return undefined;
  const stored = JSON.parse(row.new_parts ?? '[]') as readonly (readonly [string, number])[];
  return { no: row.artifacts, parts: new Map([...write.known, ...stored]) };
}
