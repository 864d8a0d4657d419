import { invalid } from '../../core/error.ts';
import { endsTurn, type SnapshotEvent, type SnapshotStatus } from '../../protocol/snapshot.ts';
import type { FinishReason } from '../../protocol/turn.ts';
import type { RetentionPolicy } from '../contract/store.ts';

/** A snapshot as retention sees it. A store may use numbers as ids. */
export interface RetainedSnapshot<Id extends string | number = string> {
  /** The id of the snapshot. */
  readonly snapshotId: Id;
  /** The id of its parent. */
  readonly parentId?: Id | undefined;
  /** -1: the head, saved without being listed. */
  readonly index: number;
  /** `pending` means that a run works on it; one that will not end any more is `expired`. */
  readonly status: SnapshotStatus;
  /** The event that caused the snapshot. */
  readonly event: SnapshotEvent;
  /** How its turn ended. */
  readonly finishReason?: FinishReason | undefined;
  /** Its label. */
  readonly label?: string | undefined;
  /** Milliseconds since the epoch. */
  readonly updatedAt: number;
}

/** One session as retention sees it. */
export interface RetainedSession<Id extends string | number = string> {
  /** The session. */
  readonly sessionId: string;
  /** Milliseconds since the epoch. */
  readonly updatedAt: number;
  /** The listed snapshots and an unlisted head, in any order. */
  readonly snapshots: readonly RetainedSnapshot<Id>[];
  /** The id of its head. */
  readonly headId?: Id | undefined;
  /** The snapshot that the open run was claimed from, and the one it continues from. */
  readonly held: readonly (Id | undefined)[];
  /** A run holds it. */
  readonly running: boolean;
}

/** The snapshots to delete, and the new parents of the remaining ones. */
export interface Selection<Id extends string | number = string> {
  /** The ids of the snapshots to delete. */
  readonly victims: ReadonlySet<Id>;
  /** Snapshot id to its new parent; `undefined`: it has become a root. */
  readonly reparented: ReadonlyMap<Id, Id | undefined>;
  /** Nothing but an old head would be left, and the policy says that such a session goes as a whole. */
  readonly dropSession: boolean;
}

export function checkPolicy({ keepLast, olderThan }: RetentionPolicy): void {
  if (keepLast !== undefined && !(Number.isInteger(keepLast) && keepLast >= 0)) {
    throw invalid(`keepLast is ${keepLast}. Expected a whole number of snapshots, 0 or more.`);
  }
  if (olderThan !== undefined && !(olderThan >= 0)) {
    throw invalid(`olderThan is ${olderThan}. Expected milliseconds, 0 or more.`);
  }
}

/**
 * Selects the snapshots of a session that a policy deletes. Pure, and the same for every store. Whatever the policy says, these stay: the head;
 * one that is running, and the base of its run; an interrupted one that could still be answered; the first
 * answer of an interrupted one that stays, and what an interrupted edit edits, else it could be answered twice; what a failed, aborted or pending one that
 * stays hangs on, as that tells whether it is orphaned. Other ancestors may be deleted: their children move up.
 */
export function selectVictims<Id extends string | number>(
  session: RetainedSession<Id>,
  policy: RetentionPolicy,
  now: number,
): Selection<Id> {
  if (policy.keepSessions?.includes(session.sessionId)) {
    return { victims: new Set(), reparented: new Map(), dropSession: false };
  }
  const tree = toTree(session.snapshots);
  const kept = hangingTogether(tree, [...named(tree, policy, now), ...needed(tree, session)]);
  const victims = new Set<Id>();
  for (const id of tree.byId.keys()) if (!kept.has(id)) victims.add(id);
  return {
    victims,
    reparented: reparent(tree, victims),
    dropSession: policy.dropSessions === true && isSpent(session, policy, now, kept, tree),
  };
}

interface Tree<Id extends string | number> {
  /** Oldest first. */
  readonly inOrder: readonly RetainedSnapshot<Id>[];
  readonly byId: ReadonlyMap<Id, RetainedSnapshot<Id>>;
  /** The end of the first successful turn that continued from this one. */
  readonly firstAnswer: ReadonlyMap<Id, RetainedSnapshot<Id>>;
}

function toTree<Id extends string | number>(snapshots: readonly RetainedSnapshot<Id>[]): Tree<Id> {
  const inOrder = snapshots.toSorted((a, b) => orderOf(a) - orderOf(b));
  const byId = new Map(inOrder.map((each) => [each.snapshotId, each]));
  const firstAnswer = new Map<Id, RetainedSnapshot<Id>>();
  for (const each of inOrder) {
    if (each.status !== 'succeeded' || !endsTurn(each.event)) continue;
    for (const start of startsOf(each, byId)) {
      if (!firstAnswer.has(start)) firstAnswer.set(start, each);
    }
  }
  return { inOrder, byId, firstAnswer };
}

/** The snapshots that a turn continued from: above the snapshots within the turn, and with those that were edited. */
function startsOf<Id extends string | number>(
  { parentId }: RetainedSnapshot<Id>,
  byId: ReadonlyMap<Id, RetainedSnapshot<Id>>,
): readonly Id[] {
  if (parentId === undefined) return [];
  const parent = byId.get(parentId);
  if (parent === undefined || endsTurn(parent.event)) return [parentId];
  return [parentId, ...startsOf(parent, byId)];
}

// A snapshot that is not listed is the newest.
function orderOf({ index }: RetainedSnapshot<string | number>): number {
  return index < 0 ? Number.MAX_SAFE_INTEGER : index;
}

/** The snapshots that the policy itself keeps. */
function named<Id extends string | number>(
  { inOrder }: Tree<Id>,
  { keepLast, olderThan, keepLabelled = true }: RetentionPolicy,
  now: number,
): Id[] {
  const listed = inOrder.filter((each) => each.index >= 0);
  const from = keepLast === undefined ? 0 : listed.length - keepLast;
  const stays = (each: RetainedSnapshot<Id>, place: number): boolean =>
    (keepLabelled && each.label !== undefined) ||
    (place >= from && !isOld(each.updatedAt, olderThan, now));
  return listed.filter(stays).map((each) => each.snapshotId);
}

function isOld(updatedAt: number, olderThan: number | undefined, now: number): boolean {
  return olderThan !== undefined && now - updatedAt > olderThan;
}

/** The snapshots that stay whatever the policy says. */
function needed<Id extends string | number>(
  { inOrder, byId, firstAnswer }: Tree<Id>,
  { headId, held }: RetainedSession<Id>,
): Id[] {
  // An edit is answered with the snapshot that it edits.
  const isAnswered = (each: RetainedSnapshot<Id>): boolean => {
    const { parentId } = each;
    const isEdit = parentId !== undefined && isInterruptedEdit(each);
    const edited = isEdit ? byId.get(parentId) : undefined;
    return firstAnswer.has(each.snapshotId) || (edited !== undefined && isAnswered(edited));
  };
  const isOpen = (each: RetainedSnapshot<Id>): boolean =>
    each.status === 'pending' ||
    (each.status === 'succeeded' && each.finishReason === 'interrupted' && !isAnswered(each));
  const open = inOrder.filter(isOpen).map((each) => each.snapshotId);
  return [headId, ...held, ...open].filter((id) => id !== undefined);
}

function isInterruptedEdit({ event, finishReason }: RetainedSnapshot<string | number>): boolean {
  return event === 'edit' && finishReason === 'interrupted';
}

function hangingTogether<Id extends string | number>(
  { byId, firstAnswer }: Tree<Id>,
  ids: readonly Id[],
): Set<Id> {
  const kept = new Set(ids.filter((id) => byId.has(id)));
  // A set that grows while it is walked: what is added is visited as well.
  for (const id of kept) {
    const each = byId.get(id);
    const needsParent =
      each !== undefined && (each.status !== 'succeeded' || isInterruptedEdit(each));
    const parent = needsParent ? each.parentId : undefined;
    if (parent !== undefined && byId.has(parent)) kept.add(parent);
    const answer = each?.finishReason === 'interrupted' ? firstAnswer.get(id) : undefined;
    if (answer !== undefined) kept.add(answer.snapshotId);
  }
  return kept;
}

function reparent<Id extends string | number>(
  { inOrder }: Tree<Id>,
  victims: ReadonlySet<Id>,
): Map<Id, Id | undefined> {
  const moved = new Map<Id, Id | undefined>();
  // Parents come first in this order, so the parent of a deleted snapshot is known before it is needed.
  const survivors = new Map<Id, Id | undefined>();
  for (const { snapshotId, parentId } of inOrder) {
    const isCut = parentId !== undefined && victims.has(parentId);
    const up = isCut ? survivors.get(parentId) : parentId;
    if (victims.has(snapshotId)) survivors.set(snapshotId, up);
    else if (isCut) moved.set(snapshotId, up);
  }
  return moved;
}

function isSpent<Id extends string | number>(
  session: RetainedSession<Id>,
  { olderThan, keepLabelled = true }: RetentionPolicy,
  now: number,
  kept: ReadonlySet<Id>,
  { byId }: Tree<Id>,
): boolean {
  if (session.running || !isOld(session.updatedAt, olderThan, now)) return false;
  const rest = [...kept].filter((id) => id !== session.headId);
  if (rest.length > 0) return false;
  const head = session.headId === undefined ? undefined : byId.get(session.headId);
  if (head === undefined) return true;
  if (keepLabelled && head.label !== undefined) return false;
  return head.finishReason !== 'interrupted' && isOld(head.updatedAt, olderThan, now);
}
