import { failedPrecondition, invalid } from '../../core/error.ts';
import { checkSnapshotId } from '../../protocol/ids.ts';
import type { Snapshot, SnapshotStatus } from '../../protocol/snapshot.ts';
import {
  type Committed,
  type CommitWrite,
  isWithinTurn,
  type StateBase,
} from '../contract/store.ts';
import type { SnapshotFact } from './decide-claim.ts';
import { untaken } from './decide-steer.ts';
import { taken } from './errors.ts';

/** The facts that a commit depends on. The store reads them under the lock, or the condition, that it writes under. */
export interface CommitFacts<Key> {
  /** The id of the run. */
  readonly runId: string;
  /** The session. */
  readonly sessionId: string;
  /** The pending snapshot of a detached run, which is listed already. */
  readonly own: {
    readonly key: Key;
    readonly index: number;
    readonly parent: Key | null;
    /** Its parent when the run does not succeed: the listed snapshot that the run was claimed from. */
    readonly claimedFrom: Key | null;
  } | null;
  /** The snapshot that the run was claimed from. */
  readonly start: Key | null;
  /** How many of the run's inputs its last checkpoint includes. */
  readonly inputsDone: number;
  /** The head of the session. */
  readonly head: { readonly key: Key; readonly isListed: boolean } | null;
  /** The index of the next snapshot. */
  readonly nextIndex: number;
  /** The snapshot that `write.parentId` names; `null` when the store has none. */
  readonly parent:
    | (SnapshotFact<Key> & {
        readonly inSession: boolean;
        readonly status: Exclude<SnapshotStatus, 'expired'>;
      })
    | null;
  /** Another snapshot, or another run, has the id that is to be written. */
  readonly isTaken: boolean;
  /** How many messages the run's inbox has; absent in a store without inboxes. */
  readonly inbox?: number;
}

/** The writes of a commit. */
export interface CommitDecision<Key> {
  /** The row to fill in: a detached run's own. `null`: a new one. */
  readonly row: Key | null;
  /** The parent of the snapshot. */
  readonly parent: Key | null;
  /** `null`: not listed. */
  readonly index: number | null;
  /** Whether the snapshot counts from the claim of its run or from this commit. */
  readonly createdAt: 'claim' | 'commit';
  /** The index that an unlisted head gets because the session continues elsewhere, or with an edit of it. */
  readonly listHeadAs: number | null;
  /** The unlisted head that the snapshot replaces. */
  readonly replaces: Key | null;
  /** Whether the snapshot becomes the head. */
  readonly movesHead: boolean;
  /** Later messages of the session are appended behind this snapshot's. */
  readonly movesBranchEnd: boolean;
  /** The session's next index afterwards. */
  readonly nextIndex: number;
  /** The run's checkpoint is obsolete. */
  readonly dropsCheckpoint: boolean;
  /** The change of the run: it ends, stays as it is, or continues from this snapshot as its checkpoint. */
  readonly run: 'ends' | 'stays' | { readonly inputsDone: number; readonly midTurn: boolean };
}

/** Decides what a commit writes, or refuses it: see {@link RunSupport.commit}. */
export function decideCommit<Key>(
  facts: CommitFacts<Key>,
  write: CommitWrite,
): CommitDecision<Key> {
  check(facts, write);
  const { own, head, start, parent } = facts;
  const succeeds = write.status === 'succeeded';
  const row = isOwn(facts, write) ? own : null;
  // A snapshot within a turn leaves the head where it is, so that a turn that fails leaves the session where it was.
  const movesHead = succeeds && !isWithinTurn(write);
  const hasUnlistedHead = head !== null && !head.isListed;
  // An edited snapshot stays, so an edit does not replace it.
  const isFromHead =
    head !== null && (head.key === start || head.key === parent?.key) && write.event !== 'edit';
  // An unlisted head gets its place in the list before anything that does not continue from it, and before an edit of it.
  const listsHead = succeeds && hasUnlistedHead && !isFromHead;
  const afterHead = facts.nextIndex + (listsHead ? 1 : 0);
  const isNew = row === null && write.listed !== false;
  const run = runAfter(facts, write);
  return {
    row: row?.key ?? null,
    parent:
      row === null && listsHead && parent?.key === head.key ? head.key : parentOf(facts, write),
    index: row !== null ? row.index : isNew ? afterHead : null,
    createdAt: write.snapshotId === facts.runId ? 'claim' : 'commit',
    listHeadAs: listsHead ? facts.nextIndex : null,
    replaces: movesHead && hasUnlistedHead && isFromHead ? head.key : null,
    movesHead,
    movesBranchEnd: succeeds,
    nextIndex: afterHead + (isNew ? 1 : 0),
    dropsCheckpoint: write.end || (succeeds && run !== 'stays'),
    run,
  };
}

function check<Key>(facts: CommitFacts<Key>, write: CommitWrite): void {
  const { own, parent } = facts;
  const { snapshotId, parentId, status, listed, end } = write;
  checkSnapshotId(snapshotId);
  if (listed === false && status !== 'succeeded') {
    throw invalid(`A ${status} snapshot is always listed.`);
  }
  const endsOwn = end && isOwn(facts, write);
  if (own !== null && end !== isOwn(facts, write)) {
    throw invalid(`A detached run ends with its own snapshot "${facts.runId}".`);
  }
  if (!endsOwn && facts.isTaken) throw taken(snapshotId);
  const { inbox = 0 } = facts;
  const mustTake = end && write.steered !== undefined && write.leavesInbox !== true;
  if (mustTake && inbox > (write.steered ?? 0)) throw untaken(inbox);
  if (parentId === undefined) return;
  if (parent?.inSession === true && parent.status === 'succeeded') return;
  throw failedPrecondition(
    `Snapshot "${parentId}" is not a succeeded snapshot of session "${facts.sessionId}", so nothing can continue from it.`,
  );
}

/** Whether the write is the pending snapshot that a detached run has listed. */
function isOwn<Key>({ own, runId }: CommitFacts<Key>, { snapshotId }: CommitWrite): boolean {
  return own !== null && snapshotId === runId;
}

function parentOf<Key>(facts: CommitFacts<Key>, write: CommitWrite): Key | null {
  const { own, parent } = facts;
  if (own === null || !isOwn(facts, write)) {
    // A state that is not listed is never a parent.
    return parent === null || parent.isListed ? (parent?.key ?? null) : parent.parent;
  }
  // Nothing continues from a snapshot within the turn of a run that did not succeed.
  return write.status === 'succeeded' ? own.parent : own.claimedFrom;
}

function runAfter<Key>(
  { inputsDone, parent, start }: CommitFacts<Key>,
  { end, status, event }: CommitWrite,
): CommitDecision<Key>['run'] {
  if (end) return 'ends';
  if (status !== 'succeeded') return 'stays';
  // Files that others have changed are saved before the turn. It continues from there if it starts from the snapshot before.
  if (event === 'edit') {
    return parent?.key === start && start !== null ? { inputsDone, midTurn: false } : 'stays';
  }
  const midTurn = event === 'toolIterationEnd';
  return { inputsDone: midTurn ? inputsDone : inputsDone + 1, midTurn };
}

/** The result of a commit, with its snapshot described on demand, which no turn needs. */
export class CommittedTurn implements Committed {
  readonly base: StateBase;
  readonly #describe: () => Snapshot;
  #snapshot: Snapshot | undefined;

  constructor(base: StateBase, describe: () => Snapshot) {
    this.base = base;
    this.#describe = describe;
  }

  get snapshot(): Snapshot {
    this.#snapshot ??= this.#describe();
    return this.#snapshot;
  }
}
