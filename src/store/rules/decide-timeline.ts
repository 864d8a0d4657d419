import { checkSessionId, checkSnapshotId } from '../../protocol/ids.ts';
import type { SnapshotStatus } from '../../protocol/snapshot.ts';
import { checkHead, checkHolder, type SnapshotFact } from './decide-claim.ts';
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

/** The head that a caller expects, if it does. */
interface Expecting {
  readonly expectHead?: string | undefined;
}

/** Decides whether the head moves to a snapshot: see {@link TimelineSupport.restore}. */
export function decideRestore<Key, Run>(
  facts: NamedFacts<Key> & { readonly run: HolderFact<Run> | null; readonly now: number },
  { snapshotId, expectHead }: Expecting & { readonly snapshotId: string },
): RestoreDecision<Run> {
  const snapshot = succeeded(facts, snapshotId);
  const { run, head } = facts;
  checkHolder(run, facts.sessionId, facts.now);
  checkHead(head?.id ?? null, expectHead);
  return {
    displaced: run === null ? null : run.key,
    listsHead: head !== null && !head.isListed && head.key !== snapshot.key,
  };
}

/** Refuses a fork that cannot be made: see {@link TimelineSupport.fork}. */
export function checkFork<Key>(
  facts: NamedFacts<Key> & {
    /** A snapshot or a run has the id of the new snapshot. */
    readonly isTaken: boolean;
    /** The id of the new session is in use. */
    readonly sessionExists: boolean;
  },
  snapshotId: string,
  target: Expecting & { readonly sessionId: string; readonly snapshotId: string },
): void {
  succeeded(facts, snapshotId);
  checkHead(facts.head?.id ?? null, target.expectHead);
  checkSessionId(target.sessionId);
  checkSnapshotId(target.snapshotId);
  if (facts.isTaken) throw taken(target.snapshotId);
  if (facts.sessionExists) throw sessionExists(target.sessionId);
}

/** Decides on a label: see {@link TimelineSupport.label}. A snapshot that gets one is listed. */
export function decideLabel<Key>(
  facts: NamedFacts<Key>,
  change: Expecting & { readonly snapshotId: string; readonly label: string | null },
): { readonly lists: boolean } {
  const snapshot = written(facts, change.snapshotId);
  checkHead(facts.head?.id ?? null, change.expectHead);
  return { lists: change.label !== null && !snapshot.isListed };
}

type Named<Key> = NonNullable<NamedFacts<Key>['snapshot']>;

function written<Key>(facts: NamedFacts<Key>, snapshotId: string): Named<Key> {
  if (facts.snapshot !== null) return facts.snapshot;
  throw facts.isReserved ? stillRunning(snapshotId) : notFound('snapshot', snapshotId);
}

function succeeded<Key>(facts: NamedFacts<Key>, snapshotId: string): Named<Key> {
  const snapshot = written(facts, snapshotId);
  if (snapshot.status === 'succeeded') return snapshot;
  throw notSucceeded(snapshotId, snapshot.status);
}
