import type { Snapshot } from '../../../src/client/index.ts';

type Place = Pick<Snapshot, 'snapshotId' | 'parentId' | 'status' | 'createdAt'>;

/** Whether a turn ended without a result that the session can continue from. */
function isFailed({ status }: Pick<Snapshot, 'status'>): boolean {
  return status === 'failed' || status === 'aborted' || status === 'expired';
}

/** The snapshot itself, or the closest one before it that the session can continue from. */
export function lastGood(timeline: readonly Place[], snapshotId: string): string | undefined {
  const byId = new Map(timeline.map((each) => [each.snapshotId, each]));
  let at = byId.get(snapshotId);
  // A snapshot that is not known here is for the server to judge.
  if (at === undefined) return snapshotId;
  while (at && at.status !== 'succeeded') at = byId.get(at.parentId ?? '');
  return at?.snapshotId;
}

/** The failed turn that came last, if nothing has happened since; the conversation itself does not contain it. */
export function latestFailure<Each extends Place>(
  timeline: readonly Each[],
  headId: string | undefined,
): Each | undefined {
  let latest: Each | undefined;
  for (const each of timeline) {
    if (latest === undefined || each.createdAt >= latest.createdAt) latest = each;
  }
  if (!latest || !isFailed(latest)) return undefined;
  // A session of which only the first turn exists, and failed, may have that as its head.
  return latest.parentId === headId || latest.snapshotId === headId ? latest : undefined;
}
