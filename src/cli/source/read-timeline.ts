import type { Snapshot } from '../../protocol/snapshot.ts';
import type { AgentAccess } from './agent-access.ts';
import { allPages } from './all-pages.ts';

/** All snapshots of a session, including orphaned ones. */
export async function readTimeline(
  agent: Pick<AgentAccess, 'listSnapshots'>,
  sessionId: string,
): Promise<Snapshot[]> {
  const items = await allPages((cursor) =>
    agent.listSnapshots(sessionId, {
      includeOrphaned: true,
      limit: 200,
      ...(cursor !== undefined && { cursor }),
    }),
  );
  return items as Snapshot[];
}
