import type { RemoteAgent } from '../../../src/client/index.ts';

type Found = ReturnType<RemoteAgent['getSnapshot']>;

/** Whole states, so only a few. */
const maxKept = 12;

/** An agent that does not ask twice for a snapshot that cannot change; its label and place are read from the timeline. */
export function withSnapshotCache(agent: RemoteAgent): RemoteAgent {
  const kept = new Map<string, Found>();
  return {
    ...agent,
    getSnapshot(lookup, options) {
      const snapshotId = typeof lookup === 'string' ? lookup : idIn(lookup);
      if (snapshotId === undefined) return agent.getSnapshot(lookup, options);
      const { messages } = options ?? {};
      const key = `${snapshotId} ${messages?.last} ${messages?.before}`;
      const known = kept.get(key);
      kept.delete(key);
      const found = known ?? agent.getSnapshot(lookup, messages && { messages });
      kept.set(key, found);
      if (!known) void dropUnlessFinal(kept, key, found);
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

function idIn(lookup: object): string | undefined {
  return 'snapshotId' in lookup ? String(lookup.snapshotId) : undefined;
}

async function dropUnlessFinal(kept: Map<string, Found>, key: string, found: Found): Promise<void> {
  const snapshot = await found.catch(() => undefined);
  const isFinal = snapshot?.status === 'succeeded' || snapshot?.status === 'failed';
  if (!isFinal && kept.get(key) === found) kept.delete(key);
}
