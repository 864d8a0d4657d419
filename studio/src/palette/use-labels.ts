import { useEffect, useState } from 'react';
import type { AgentInfo, SessionInfo, Snapshot } from '../../../src/client/index.ts';
import { agentOf } from '../lib/server.ts';

/** A snapshot that has a label. */
export interface Labelled {
  readonly session: SessionInfo;
  readonly snapshot: Snapshot;
  readonly label: string;
}

/** Labels are looked for in this many sessions of each agent, the latest first, and in this many snapshots of each. */
const most = { sessions: 20, snapshots: 1_000 };

/** The labelled snapshots of all agents, read once. */
export function useLabels(agents: readonly AgentInfo[]): readonly Labelled[] {
  const [labels, setLabels] = useState<readonly Labelled[]>([]);
  useEffect(() => {
    let isCurrent = true;
    const stored = agents.filter(({ metadata }) => metadata.timeline);
    Promise.all(stored.map(({ name }) => labelsOf(name).catch(() => []))).then(
      (lists) => isCurrent && setLabels(lists.flat()),
      () => {},
    );
    return () => {
      isCurrent = false;
    };
  }, [agents]);
  return labels;
}

async function labelsOf(agent: string): Promise<readonly Labelled[]> {
  const { items } = await agentOf(agent).listSessions({ labelled: true, limit: most.sessions });
  const lists = await Promise.all(items.map(labelsIn));
  return lists.flat();
}

async function labelsIn(session: SessionInfo): Promise<readonly Labelled[]> {
  const agent = agentOf(session.agent);
  const labels: Labelled[] = [];
  let cursor: string | undefined;
  for (let read = 0; read < most.snapshots; ) {
    const page = await agent.listSnapshots(session.sessionId, {
      includeOrphaned: true,
      limit: 200,
      ...(cursor !== undefined && { cursor }),
    });
    for (const snapshot of page.items) {
      const { label } = snapshot;
      if (label !== undefined) labels.push({ session, snapshot, label });
    }
    read += page.items.length;
    cursor = page.next;
    if (cursor === undefined) break;
  }
  return labels;
}
