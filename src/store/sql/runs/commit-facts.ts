import { isSnapshotId } from '../../../protocol/ids.ts';
import type { CommitWrite, RunRef } from '../../contract/store.ts';
import type { CommitFacts } from '../../rules/decide-commit.ts';
import { notHeld } from '../../rules/errors.ts';
import type { Cipher } from '../content/cipher.ts';
import type { Dialect } from '../database/dialect.ts';
import { first, one, type Plan, readUnderLock, statement } from '../database/query.ts';
import type { Location } from '../history/location.ts';
import type { FoundBase } from '../history/plan-state.ts';
import { runHome, type StateContext } from '../history/state-rows.ts';
import { uuidBytes, uuidText } from '../values/bytes.ts';
import { code, fromStatus } from '../values/codes.ts';
import type { HeldPlace, KnownRun } from './held-runs.ts';
import { inboxOf } from './inbox.ts';
import { type EndingRun, endingColumns } from './journal.ts';

/** The run of a commit with its session: what writing it has to know. */
export interface HeldCommit extends EndingRun, FoundBase, HeldPlace {
  readonly now: number;
  readonly owner: string;
  readonly agent: string;
  readonly session_id: string;
  readonly created_at: number;
  readonly head: number | null;
  readonly parent_row_id: number | null;
  readonly parent_parent: number | null;
  /** The id of `parent_parent`, which the snapshot hangs on when the parent is not listed. */
  readonly parent_parent_id: Uint8Array | null;
}

/** The run of a commit with its session, and the snapshot that the written one continues from. */
interface CommitRow extends HeldCommit {
  readonly start: number | null;
  readonly own_snapshot: number | null;
  readonly inputs_done: number;
  readonly head_idx: number | null;
  readonly next_index: number;
  readonly parent_session: number | null;
  readonly parent_status: number | null;
  readonly parent_idx: number | null;
  /** Whether another snapshot, or another run, has the id that is to be written. */
  readonly is_taken: number;
}

const factsText = (d: Dialect): string => `
    SELECT ${d.now} AS now, r.id, r.session, z.owner, z.agent, z.id AS session_id, r.start, r.base, r.own_snapshot,
      r.checkpoint, r.inputs_done, r.created_at, ${endingColumns},
      z.head, h.idx AS head_idx, z.next_index, z.branch_end,
      f.branch AS from_branch, f.branch_length AS from_branch_length,
      p.row_id AS parent_row_id, p.session AS parent_session, p.status AS parent_status,
      p.idx AS parent_idx, p.parent AS parent_parent,
      CASE WHEN p.idx IS NULL THEN (SELECT g.id FROM @snapshots g WHERE g.row_id = p.parent) END AS parent_parent_id,
      CASE WHEN EXISTS (SELECT 1 FROM @snapshots t WHERE t.id = $5)
        OR EXISTS (SELECT 1 FROM @runs t WHERE t.id = $5 AND t.id <> r.id) THEN 1 ELSE 0 END AS is_taken
    FROM @runs r JOIN @sessions z ON z.row_id = r.session
    LEFT JOIN @snapshots h ON h.row_id = z.head
    LEFT JOIN @snapshots f ON f.row_id = $3
    LEFT JOIN @snapshots p ON p.id = $4
    WHERE r.id = $1 AND r.attempt = $2`;
const selectHeld = readUnderLock<CommitRow>(
  'commit_facts',
  (d) => `${factsText(d)} ${d.lock('z, r')}`,
);
const selectFacts = statement<CommitRow>('commit_facts_now', factsText);

/** The pending snapshot of a detached run, and what its run was claimed from. */
interface OwnRow {
  readonly idx: number;
  readonly parent: number | null;
  readonly parent_id: Uint8Array | null;
  readonly claimed_from: number | null;
  readonly claimed_from_id: Uint8Array | null;
}

const selectOwn = statement<OwnRow>(
  'commit_own',
  `SELECT o.idx, o.parent, p.id AS parent_id, c.row_id AS claimed_from, c.id AS claimed_from_id
   FROM @snapshots o LEFT JOIN @snapshots p ON p.row_id = o.parent
   LEFT JOIN @snapshots s ON s.row_id = $2
   LEFT JOIN @snapshots c ON c.row_id = CASE WHEN s.idx IS NULL THEN s.parent ELSE s.row_id END
   WHERE o.row_id = $1`,
);

/** Facts of a commit, and the rows that they were read from. */
export interface ReadCommit {
  readonly facts: CommitFacts<number>;
  readonly held: HeldCommit;
  readonly own: OwnRow | undefined;
}

/** Reads what the rules of a commit have to know. It holds the run until the transaction ends, unless it is only to look. */
export function* readCommit(
  { runId, attempt }: RunRef,
  { snapshotId, parentId, end, steered }: CommitWrite,
  from: Location | undefined,
  { cipher, onlyLooks = false }: { readonly cipher: Cipher; readonly onlyLooks?: boolean },
): Plan<ReadCommit> {
  const row = isSnapshotId(runId)
    ? yield* first(
        onlyLooks ? selectFacts : selectHeld,
        uuidBytes(runId),
        attempt,
        from?.snapshot ?? null,
        idValue(parentId),
        idValue(snapshotId),
      )
    : undefined;
  if (row === undefined) throw notHeld(runId, attempt);
  const { own_snapshot, start } = row;
  const own = own_snapshot === null ? undefined : yield* one(selectOwn, own_snapshot, start);
  const asks = end && steered !== undefined && (row.has_steps === 1 || steered > 0);
  const inbox = asks ? (yield* inboxOf(row, cipher)).length : 0;
  return { facts: { ...toFacts(runId, row, own), inbox }, held: row, own };
}

// Gives nothing unless all is as the parameters say and the run has no journal. Only for SQLite, where nothing is to be locked.
const selectUnchanged = statement<Pick<HeldCommit, 'now' | 'created_at' | keyof FoundBase>>(
  'commit_unchanged',
  (d) => `
    SELECT ${d.now} AS now, r.created_at, p.branch AS from_branch, p.branch_length AS from_branch_length
    FROM @runs r JOIN @sessions z ON z.row_id = r.session LEFT JOIN @snapshots p ON p.row_id = z.head
    WHERE r.id = $1 AND r.attempt = $2 AND r.own_snapshot IS NULL AND r.base IS $3 AND r.checkpoint IS $4
      AND r.inputs_done = $5 AND z.head IS $6 AND z.branch_end IS $7 AND z.next_index = $8 AND p.row_id IS $6
      AND ($6 IS NULL OR p.session = r.session AND p.status = ${code.succeeded} AND p.idx IS NOT NULL AND p.parent IS $9)
      AND NOT EXISTS (SELECT 1 FROM @journal j WHERE j.run = r.id)
      AND NOT EXISTS (SELECT 1 FROM @snapshots t WHERE t.id = $10)
      AND NOT EXISTS (SELECT 1 FROM @runs t WHERE t.id = $10 AND t.id <> r.id)`,
);

/**
 * What the rules of a commit have to know, if the database still says what is known of the run; `undefined` when it does not, or when the
 * commit does not continue from the head.
 */
export function* compareCommit(
  { runId, attempt }: RunRef,
  { snapshotId, steered = 0 }: CommitWrite,
  from: Location | undefined,
  { facts, held }: KnownRun,
  context: StateContext,
): Plan<ReadCommit | undefined> {
  const { own, head, parent, inputsDone, nextIndex } = facts;
  const headKey = head?.key ?? null;
  const isAtHead = headKey === (parent?.key ?? null) && parent?.isListed !== false;
  const home = runHome(runId, context);
  if (!isAtHead || home === undefined || own !== null || steered > 0) return undefined;
  if (from !== undefined && from.snapshot !== headKey) return undefined;
  const id = uuidBytes(runId);
  const row = yield* first(
    selectUnchanged,
    id,
    attempt,
    held.base,
    held.checkpoint,
    inputsDone,
    headKey,
    held.branch_end,
    nextIndex,
    parent?.parent ?? null,
    snapshotId === runId ? id : idValue(snapshotId),
  );
  if (row === undefined) return undefined;
  return {
    facts,
    held: {
      id,
      session: held.session,
      owner: home.owner,
      agent: home.agent,
      session_id: facts.sessionId,
      now: row.now,
      created_at: row.created_at,
      base: held.base,
      checkpoint: held.checkpoint,
      branch_end: held.branch_end,
      head: headKey,
      has_steps: 0,
      has_events: 0,
      from_branch: row.from_branch,
      from_branch_length: row.from_branch_length,
      parent_row_id: parent?.key ?? null,
      parent_parent: null,
      parent_parent_id: null,
    },
    own: undefined,
  };
}

function toFacts(runId: string, row: CommitRow, own: OwnRow | undefined): CommitFacts<number> {
  return {
    runId,
    sessionId: row.session_id,
    own:
      own === undefined || row.own_snapshot === null
        ? null
        : {
            key: row.own_snapshot,
            index: own.idx,
            parent: own.parent,
            claimedFrom: own.claimed_from,
          },
    start: row.start,
    inputsDone: row.inputs_done,
    head: row.head === null ? null : { key: row.head, isListed: row.head_idx !== null },
    nextIndex: row.next_index,
    parent:
      row.parent_row_id === null || row.parent_status === null
        ? null
        : {
            key: row.parent_row_id,
            isListed: row.parent_idx !== null,
            parent: row.parent_parent,
            inSession: row.parent_session === row.session,
            status: fromStatus(row.parent_status),
          },
    isTaken: row.is_taken === 1,
  };
}

/** The id of the snapshot that a commit hangs on. */
export function parentIdOf(
  { held, own }: ReadCommit,
  rowId: number | null,
  { parentId }: CommitWrite,
): string | undefined {
  if (rowId === null) return undefined;
  if (rowId === held.parent_row_id) return parentId;
  const known = [
    [held.parent_parent, held.parent_parent_id],
    [own?.parent, own?.parent_id],
    [own?.claimed_from, own?.claimed_from_id],
  ] as const;
  const id = known.find(([key, its]) => key === rowId && its)?.[1];
  return id ? uuidText(id) : undefined;
}

function idValue(id: string | undefined): Uint8Array | null {
  return id === undefined || !isSnapshotId(id) ? null : uuidBytes(id);
}
