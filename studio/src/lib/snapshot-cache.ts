import type { RemoteAgent, Snapshot } from '../../../src/client/index.ts';

/** Whole states, so only a few. */
const maxKept = 12;

/** An agent that does not ask twice for a snapshot that cannot change; its label and place are read from the timeline. */
export function withSnapshotCache(agent: RemoteAgent): RemoteAgent {
  const kept = new Map<string, Promise<Snapshot | undefined>>();
  return {
    ...agent,
    getSnapshot(lookup, options) {
      if (!('snapshotId' in lookup)) return agent.getSnapshot(lookup, options);
      const { snapshotId } = lookup;
      const known = kept.get(snapshotId);
      kept.delete(snapshotId);
      const found = known ?? agent.getSnapshot(lookup);
      kept.set(snapshotId, found);
      if (!known) void dropUnlessFinal(kept, snapshotId, found);
      const [oldest] = kept.size > maxKept ? kept.keys() : [];
      if (oldest !== undefined) kept.delete(oldest);
      return found;
    },
    async deleteSession(sessionId, options) {
      kept.clear();
      return agent.deleteSession(sessionId, options);
    },
  };
}

async function dropUnlessFinal(
  kept: Map<string, Promise<Snapshot | undefined>>,
  snapshotId: string,
  found: Promise<Snapshot | undefined>,
): Promise<void> {
  const snapshot = await found.catch(() => undefined);
  const isFinal = snapshot?.status === 'succeeded' || snapshot?.status === 'failed';
  if (!isFinal && kept.get(snapshotId) === found) kept.delete(snapshotId);
}
