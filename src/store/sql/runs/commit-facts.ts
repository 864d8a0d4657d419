import type { CommitWrite, RunRef } from '../../contract/store.ts';
import type { CommitFacts } from '../../rules/decide-commit.ts';
import { notHeld } from '../../rules/errors.ts';
import { isSnapshotId } from '../../rules/ids.ts';
import type { Cipher } from '../content/cipher.ts';
import type { Dialect } from '../database/dialect.ts';
import { first, one, type Plan, readUnderLock, statement } from '../database/query.ts';
import type { Location } from '../history/location.ts';
import type { FoundBase } from '../history/plan-state.ts';
import { uuidBytes, uuidText } from '../values/bytes.ts';
import { fromStatus } from '../values/codes.ts';
import { type EndingRun, endingColumns } from './end-run.ts';
import { inboxOf } from './inbox.ts';

/** The run of a commit with its session, and the snapshot that the written one continues from. */
export interface CommitRow extends EndingRun, FoundBase {
  readonly now: number;
  readonly owner: string;
  readonly agent: string;
  readonly session_id: string;
  readonly start: number | null;
  readonly base: number | null;
  readonly own_snapshot: number | null;
  readonly checkpoint: number | null;
  readonly inputs_done: number;
  readonly created_at: number;
  readonly head: number | null;
  readonly head_idx: number | null;
  readonly next_index: number;
  readonly branch_end: number | null;
  readonly parent_row_id: number | null;
  readonly parent_session: number | null;
  readonly parent_status: number | null;
  readonly parent_idx: number | null;
  readonly parent_parent: number | null;
  /** The id of `parent_parent`, which the snapshot hangs on when the parent is not listed. */
  readonly parent_parent_id: Uint8Array | null;
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

/** What a commit depends on, and the rows that it was read from. */
export interface ReadCommit {
  readonly facts: CommitFacts<number>;
  readonly held: CommitRow;
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
  return { facts: { ...toFacts(row, own), inbox }, held: row, own };
}

function toFacts(row: CommitRow, own: OwnRow | undefined): CommitFacts<number> {
  return {
    runId: uuidText(row.id),
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
