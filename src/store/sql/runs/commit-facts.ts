import { isSnapshotId } from '../../../protocol/ids.ts';
import type { CommitWrite, EventCursor, RunRef } from '../../contract/store.ts';
import type { CommitFacts } from '../../rules/decide-commit.ts';
import { notHeld } from '../../rules/errors.ts';
import type { Cipher } from '../content/cipher.ts';
import type { HomeRow } from '../content/places.ts';
import type { Dialect } from '../database/dialect.ts';
import {
  expect,
  first,
  guard,
  locking,
  type Plan,
  run,
  type SqlValue,
  statement,
} from '../database/query.ts';
import type { Location } from '../history/location.ts';
import { fromHex, uuidBytes, uuidText } from '../values/bytes.ts';
import { fromStatus } from '../values/codes.ts';
import { isEvent, isOfOpenRun, journal } from '../values/journal.ts';
import { type LeftInbox, readRest } from './inbox.ts';

/** The run of a commit with its session, and the snapshots that the commit depends on. Ids are hexadecimal. */
export interface CommitRow extends HomeRow {
  readonly session: number;
  readonly start: number | null;
  readonly base: number | null;
  readonly checkpoint: number | null;
  readonly inputs_done: number;
  /** The pending snapshot of a detached run, and what the run was claimed from. */
  readonly own_snapshot: number | null;
  readonly own_idx: number | null;
  readonly own_parent: number | null;
  readonly own_parent_id: string | null;
  readonly claimed_from: number | null;
  readonly claimed_from_id: string | null;
  /** Steps, or an inbox. */
  readonly has_steps: number;
  readonly inbox: number;
  /** The attempt and the number of the last event, with a colon between them. */
  readonly last_event: string | null;
  readonly head: number | null;
  readonly head_idx: number | null;
  readonly next_index: number;
  readonly branch_end: number | null;
  /** Whether the state that the written one grew from is still where its note says. */
  readonly has_base: number;
  /** The snapshot that the written one continues from. */
  readonly parent_row_id: number | null;
  readonly parent_session: number | null;
  readonly parent_status: number | null;
  readonly parent_idx: number | null;
  readonly parent_parent: number | null;
  readonly parent_parent_id: string | null;
  /** Whether another snapshot, or another run, has the id that is to be written. */
  readonly is_taken: number;
}

/** The columns that every commit is decided by. */
const plain = [
  'base',
  'checkpoint',
  'inputs_done',
  'own_snapshot',
  'head',
  'next_index',
  'branch_end',
  'parent_row_id',
  'parent_session',
  'parent_status',
  'parent_idx',
  'parent_parent',
] as const satisfies readonly (keyof CommitRow)[];

/** All columns that a commit is decided by. The others never change, or depend on these. */
const compared = [
  ...plain,
  'has_steps',
  'inbox',
  'last_event',
  'head_idx',
  'own_idx',
  'own_parent',
  'claimed_from',
  'has_base',
  'is_taken',
] as const satisfies readonly (keyof CommitRow)[];

/** Whether a run has neither events nor steps, and continues from the head, which its state grew from. Then the rest follows from `plain`. */
function isPlain(row: CommitRow, from: Location | undefined): boolean {
  const growsFromHead = row.has_base === 1 && from?.snapshot === row.head;
  return (
    row.own_snapshot === null &&
    row.has_steps === 0 &&
    row.last_event === null &&
    row.head === row.parent_row_id &&
    (from?.view === undefined || growsFromHead)
  );
}

// $1 run, $2 attempt, $3 to $5 where the state lies that the written one grew from, $6 parent, $7 the id to be written
const factsText = (d: Dialect): string => `
    SELECT r.session, r.created_at, z.owner, z.agent, z.id AS session_id,
      r.start, r.base, r.checkpoint, r.inputs_done, r.own_snapshot, o.idx AS own_idx, o.parent AS own_parent,
      (SELECT ${d.hex('q.id')} FROM @snapshots q WHERE q.row_id = o.parent) AS own_parent_id,
      CASE WHEN o.row_id IS NOT NULL THEN CASE WHEN s.idx IS NULL THEN s.parent ELSE s.row_id END END AS claimed_from,
      (SELECT ${d.hex('q.id')} FROM @snapshots q
        WHERE q.row_id = CASE WHEN s.idx IS NULL THEN s.parent ELSE s.row_id END) AS claimed_from_id,
      CASE WHEN EXISTS (SELECT 1 FROM @journal j WHERE j.run = r.id AND j.${isOfOpenRun}) THEN 1 ELSE 0 END AS has_steps,
      (SELECT CAST(COUNT(*) AS INTEGER) FROM @journal j WHERE j.run = r.id AND j.attempt = ${journal.inbox}) AS inbox,
      CASE WHEN EXISTS (SELECT 1 FROM @journal j WHERE j.run = r.id) THEN 1 ELSE 0 END AS has_journal,
      (SELECT j.attempt || ':' || j.last FROM @journal j WHERE j.run = r.id AND ${isEvent}
        ORDER BY j.attempt DESC, j.seq DESC LIMIT 1) AS last_event,
      z.head, h.idx AS head_idx, z.next_index, z.branch_end,
      CASE WHEN EXISTS (SELECT 1 FROM @snapshots f WHERE f.row_id = $3 AND f.branch = $4 AND f.branch_length = $5)
        THEN 1 ELSE 0 END AS has_base,
      CASE WHEN CAST($4 AS BIGINT) IS NULL OR (p.row_id = $3 AND p.branch = $4 AND p.branch_length = $5)
        THEN 1 ELSE 0 END AS may_grow,
      p.row_id AS parent_row_id, p.session AS parent_session, p.status AS parent_status, p.idx AS parent_idx,
      p.parent AS parent_parent,
      (SELECT ${d.hex('q.id')} FROM @snapshots q WHERE q.row_id = p.parent AND p.idx IS NULL) AS parent_parent_id,
      CASE WHEN EXISTS (SELECT 1 FROM @snapshots t WHERE t.id = $7)
        OR EXISTS (SELECT 1 FROM @runs t WHERE t.id = $7 AND t.id <> r.id) THEN 1 ELSE 0 END AS is_taken
    FROM @runs r JOIN @sessions z ON z.row_id = r.session
    LEFT JOIN @snapshots o ON o.row_id = r.own_snapshot
    LEFT JOIN @snapshots s ON s.row_id = r.start
    LEFT JOIN @snapshots h ON h.row_id = z.head
    LEFT JOIN @snapshots p ON p.id = $6
    WHERE r.id = $1 AND r.attempt = $2`;

const selectFacts = statement<CommitRow>('commit_facts', factsText);
const lockRun = locking(
  'commit_lock',
  (d) => `
    SELECT 1 FROM @runs r JOIN @sessions z ON z.row_id = r.session WHERE r.id = $1 AND r.attempt = $2 ${d.lock('z, r')}`,
);
/** When the run was claimed, and when it was found unchanged. */
export interface UnchangedRow {
  readonly created_at: number;
  readonly now: number;
}

// A database leaves out the tables of columns that are not compared.
const unchangedIn = (name: string, columns: readonly string[], more = '') =>
  guard<UnchangedRow>(
    name,
    (d) => `
      SELECT x.created_at, ${d.now} AS now FROM (${factsText(d)}) x
      WHERE ${columns.map((column, at) => `x.${column} IS NOT DISTINCT FROM $${at + 8}`).join(' AND ')} ${more}`,
  );
const unchanged = unchangedIn(
  'commit_unchanged',
  plain,
  'AND x.has_journal = 0 AND x.may_grow = 1',
);
const allUnchanged = unchangedIn('commit_all_unchanged', compared);
const unused = guard(
  'commit_unused',
  `SELECT 1 AS held WHERE NOT EXISTS (SELECT 1 FROM @snapshots t WHERE t.id = $1)
     AND NOT EXISTS (SELECT 1 FROM @runs t WHERE t.id = $1)`,
);

/** The statements that hold a run for a commit. */
export const commitGuards = { frequent: [lockRun, unchanged], others: [allUnchanged, unused] };

/** The facts that a commit depends on, the row that they come from, and what is left of the run's inbox when it ends. */
export interface ReadCommit {
  readonly facts: CommitFacts<number>;
  readonly row: CommitRow;
  readonly left: LeftInbox | undefined;
  /** They were not read: the process knows them from its last write. */
  readonly isExpected?: boolean;
}

/** Reads what the rules of a commit have to know. */
export function* readCommit(
  ref: RunRef,
  write: CommitWrite,
  from: Location | undefined,
  cipher: Cipher,
): Plan<ReadCommit> {
  const { runId, attempt } = ref;
  const row = isSnapshotId(runId)
    ? yield* first(selectFacts, ...keyOf(ref, write, from))
    : undefined;
  if (row === undefined) throw notHeld(runId, attempt);
  const { end, steered } = write;
  const mayLeave = end && (row.has_steps === 1 || (steered ?? 0) > 0);
  const held = { id: uuidBytes(runId), ...row };
  const rest = mayLeave ? yield* readRest(held, steered ?? 0, cipher) : undefined;
  const inbox = steered === undefined ? 0 : (rest?.messages ?? 0);
  return { facts: { ...toFacts(runId, row), inbox }, row, left: rest?.left };
}

/** Holds the run of a commit, if everything is still as the decision takes it to be. */
export function* expectUnchanged(
  ref: RunRef,
  write: CommitWrite,
  from: Location | undefined,
  { row }: ReadCommit,
): Plan<UnchangedRow> {
  const key = keyOf(ref, write, from);
  yield* run(lockRun, uuidBytes(ref.runId), ref.attempt);
  if (!isPlain(row, from)) {
    return yield* expect(allUnchanged, ...key, ...compared.map((column) => row[column]));
  }
  // A run's own id was unused when it was claimed, and nothing else has taken it since.
  if (write.snapshotId !== ref.runId) yield* expect(unused, idValue(write.snapshotId));
  return yield* expect(unchanged, ...key, ...plain.map((column) => row[column]));
}

function keyOf(
  { runId, attempt }: RunRef,
  { parentId, snapshotId }: CommitWrite,
  from: Location | undefined,
): readonly SqlValue[] {
  const { view } = from ?? {};
  return [
    uuidBytes(runId),
    attempt,
    from?.snapshot ?? null,
    view?.branch ?? null,
    view?.to ?? null,
    idValue(parentId),
    idValue(snapshotId),
  ];
}

function idValue(id: string | undefined): Uint8Array | null {
  return id === undefined || !isSnapshotId(id) ? null : uuidBytes(id);
}

export function toFacts(runId: string, row: CommitRow): CommitFacts<number> {
  const { own_snapshot: own, own_idx, parent_row_id: parent, parent_status: status } = row;
  return {
    runId,
    sessionId: row.session_id,
    own:
      own === null || own_idx === null
        ? null
        : { key: own, index: own_idx, parent: row.own_parent, claimedFrom: row.claimed_from },
    start: row.start,
    inputsDone: row.inputs_done,
    head: row.head === null ? null : { key: row.head, isListed: row.head_idx !== null },
    nextIndex: row.next_index,
    parent:
      parent === null || status === null
        ? null
        : {
            key: parent,
            isListed: row.parent_idx !== null,
            parent: row.parent_parent,
            inSession: row.parent_session === row.session,
            status: fromStatus(status),
          },
    isTaken: row.is_taken === 1,
  };
}

/** The id of the snapshot that a commit hangs on. */
export function parentIdOf(
  { row }: ReadCommit,
  rowId: number | null,
  { parentId }: CommitWrite,
): string | undefined {
  if (rowId === null) return undefined;
  if (rowId === row.parent_row_id) return parentId;
  const known = [
    [row.parent_parent, row.parent_parent_id],
    [row.own_parent, row.own_parent_id],
    [row.claimed_from, row.claimed_from_id],
  ] as const;
  const id = known.find(([key, its]) => key === rowId && its !== null)?.[1];
  return id ? uuidText(fromHex(id)) : undefined;
}

/** The last event of a run; `undefined` if it has none. */
export function lastEventOf({ last_event: last }: CommitRow): EventCursor | undefined {
  if (last === null) return undefined;
  const [attempt = 0, seq = 0] = last.split(':').map(Number);
  return { attempt, seq };
}
