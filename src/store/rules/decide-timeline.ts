import { isWaymarkError, type WaymarkError } from '../../core/error.ts';
import { isName, isSnapshotId, notAName, notASnapshotId } from '../../protocol/ids.ts';
import type { SnapshotStatus } from '../../protocol/snapshot.ts';
import { refuseHead, refuseHolder } from './decide-claim.ts';
import type { Decided, SnapshotFact } from './decision.ts';
import { notFound, notSucceeded, sessionExists, stillRunning, taken } from './errors.ts';
import type { HolderFact } from './holder.ts';

/** A snapshot that a caller names, and its session. */
export interface NamedFacts<Key> {
  /** `null`: there is none in the caller's scope. */
  readonly snapshot:
    | (SnapshotFact<Key> & { readonly status: Exclude<SnapshotStatus, 'expired'> })
    | null;
  /** The id is reserved by an open run that has not written its snapshot. */
  readonly isReserved: boolean;
  /** The session. */
  readonly sessionId: string;
  /** The head of the session. */
  readonly head: { readonly key: Key; readonly isListed: boolean; readonly id: string } | null;
}

/** A restore: the head moves to the snapshot. */
interface RestoreDecision<Run> {
  /** The expired attached run that gives way. */
  readonly displaced: Run | null;
  /** The head was not listed, and gets an index before the session leaves it. */
  readonly listsHead: boolean;
}

/** Decides whether the head moves to a snapshot: see {@link TimelineSupport.restore}. */
export function decideRestore<Key, Run>(
  facts: NamedFacts<Key> & { readonly run: HolderFact<Run> | null; readonly now: number },
  {
    snapshotId,
    expectHead,
  }: { readonly snapshotId: string; readonly expectHead?: string | undefined },
): Decided<RestoreDecision<Run>> {
  const snapshot = succeeded(facts, snapshotId);
  if (isWaymarkError(snapshot)) return snapshot;
  const { run, head } = facts;
  const refusal =
    refuseHolder(run, facts.sessionId, facts.now) ?? refuseHead(head?.id ?? null, expectHead);
  if (refusal !== undefined) return refusal;
  return {
    displaced: run === null ? null : run.key,
    listsHead: head !== null && !head.isListed && head.key !== snapshot.key,
  };
}

/** The refusal of a fork: see {@link TimelineSupport.fork}. */
export function refuseFork<Key>(
  facts: NamedFacts<Key> & {
    /** A snapshot or a run has the id of the new snapshot. */
    readonly isTaken: boolean;
    /** The id of the new session is in use. */
    readonly sessionExists: boolean;
  },
  snapshotId: string,
  target: {
    readonly sessionId: string;
    readonly snapshotId: string;
    readonly expectHead?: string | undefined;
  },
): WaymarkError | undefined {
  const snapshot = succeeded(facts, snapshotId);
  if (isWaymarkError(snapshot)) return snapshot;
  const moved = refuseHead(facts.head?.id ?? null, target.expectHead);
  if (moved !== undefined) return moved;
  if (!isName(target.sessionId)) return notAName(target.sessionId, 'session id');
  if (!isSnapshotId(target.snapshotId)) return notASnapshotId(target.snapshotId);
  if (facts.isTaken) return taken(target.snapshotId);
  return facts.sessionExists ? sessionExists(target.sessionId) : undefined;
}

/** Decides on a label: see {@link TimelineSupport.label}. A snapshot that gets one is listed. */
export function decideLabel<Key>(
  facts: NamedFacts<Key>,
  {
    snapshotId,
    label,
    expectHead,
  }: {
    readonly snapshotId: string;
    readonly label: string | null;
    readonly expectHead?: string | undefined;
  },
): Decided<{ readonly lists: boolean }> {
  const snapshot = written(facts, snapshotId);
  if (isWaymarkError(snapshot)) return snapshot;
  const moved = refuseHead(facts.head?.id ?? null, expectHead);
  if (moved !== undefined) return moved;
  return { lists: label !== null && !snapshot.isListed };
}

type Named<Key> = NonNullable<NamedFacts<Key>['snapshot']>;

function written<Key>(facts: NamedFacts<Key>, snapshotId: string): Decided<Named<Key>> {
  if (facts.snapshot !== null) return facts.snapshot;
  return facts.isReserved ? stillRunning(snapshotId) : notFound('snapshot', snapshotId);
}

function succeeded<Key>(facts: NamedFacts<Key>, snapshotId: string): Decided<Named<Key>> {
  const snapshot = written(facts, snapshotId);
  if (isWaymarkError(snapshot) || snapshot.status === 'succeeded') return snapshot;
  return notSucceeded(snapshotId, snapshot.status);
}
