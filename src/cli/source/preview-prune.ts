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
  const { store, timeline } = open;
  const previews: PrunePreview[] = [];
  for (const session of await sessionsIn(open, scope)) {
    const { sessionId, headId, updatedAt, running } = session;
    const snapshots = await allPages((page) =>
      timeline.listSnapshots(scope, sessionId, { includeOrphaned: true, ...page }),
    );
    if (headId !== undefined && !snapshots.some(({ snapshotId }) => snapshotId === headId)) {
      const head = await store.getSnapshot(scope, { snapshotId: headId });
      if (head !== undefined) snapshots.push(head);
    }
    const run = running === undefined ? undefined : await store.runs?.getRun(scope, running);
    const { victims, dropSession: dropped } = selectVictims(
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
    const deleted = dropped ? snapshots.length : victims.size;
    if (deleted > 0 || dropped) previews.push({ session, snapshots: deleted, dropped });
  }
  return previews;
}
