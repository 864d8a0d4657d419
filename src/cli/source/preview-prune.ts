import type { SessionInfo } from '../../protocol/session.ts';
import type { RetentionPolicy, Scope } from '../../store/contract/store.ts';
import { selectVictims } from '../../store/rules/retention.ts';
import { allPages } from './find.ts';
import { type OpenStore, sessionsIn } from './open-store.ts';

/** The snapshots of one session that pruning would delete. */
export interface PrunePreview {
  readonly session: SessionInfo;
  readonly snapshots: number;
  /** The session itself would be deleted, unless it has sub-agent sessions that stay. */
  readonly dropped: boolean;
}

/** Applies a retention policy to a scope without deleting anything. Only sessions that would change are returned. */
export async function previewPrune(
  open: OpenStore,
  policy: RetentionPolicy,
  scope: Scope,
  now: number,
): Promise<PrunePreview[]> {
  const previews: PrunePreview[] = [];
  for (const session of await sessionsIn(open, scope)) {
    const { victims, total, dropped } = await select(open, policy, scope, session, now);
    const snapshots = dropped ? total : victims;
    if (snapshots > 0 || dropped) previews.push({ session, snapshots, dropped });
  }
  return previews;
}

async function select(
  { store, timeline }: OpenStore,
  policy: RetentionPolicy,
  scope: Scope,
  { sessionId, headId, updatedAt, running }: SessionInfo,
  now: number,
): Promise<{ readonly victims: number; readonly total: number; readonly dropped: boolean }> {
  const listed = await allPages((page) =>
    timeline.listSnapshots(scope, sessionId, { includeOrphaned: true, ...page }),
  );
  const isListed = listed.some(({ snapshotId }) => snapshotId === headId);
  const head =
    headId === undefined || isListed
      ? undefined
      : await store.getSnapshot(scope, { snapshotId: headId });
  const run = running === undefined ? undefined : await store.runs?.getRun(scope, running);
  const snapshots = head === undefined ? listed : [...listed, head];
  const { victims, dropSession } = selectVictims(
    {
      sessionId,
      headId,
      updatedAt: Date.parse(updatedAt),
      held: [run?.parentId],
      running: running !== undefined,
      snapshots: snapshots.map((each) => ({ ...each, updatedAt: Date.parse(each.updatedAt) })),
    },
    policy,
    now,
  );
  return { victims: victims.size, total: snapshots.length, dropped: dropSession };
}
