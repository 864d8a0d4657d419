import type { Snapshot } from '../../protocol/snapshot.ts';
import type { State } from '../../protocol/state.ts';
import type { AgentAccess } from '../source/agent-access.ts';
import { messageSummary } from './message-text.ts';

/** How many branches are read: each loads a state. */
const maxTips = 32;

/** The user's message of each turn, by snapshot id. The last message of a turn carries the id. */
export async function snapshotTexts(
  agent: Pick<AgentAccess, 'getSnapshot'>,
  snapshots: readonly Snapshot[],
): Promise<Map<string, string>> {
  const parents = new Set(snapshots.map(({ parentId }) => parentId));
  const tips = snapshots.filter(({ snapshotId }) => !parents.has(snapshotId)).slice(-maxTips);
  const texts = new Map<string, string>();
  for (const { snapshotId } of tips) {
    const tip = await agent.getSnapshot({ snapshotId });
    if (tip?.state) addTexts(texts, tip.state as State, snapshotId);
  }
  return texts;
}

function addTexts(texts: Map<string, string>, { messages = [] }: State, tipId: string): void {
  let said = '';
  for (const message of messages) {
    if (message.role === 'user') said = messageSummary(message);
    const id = message.metadata?.snapshotId;
    if (typeof id === 'string') texts.set(id, said);
  }
  // A failed or unfinished turn has its own last message, without an id.
  if (!texts.has(tipId)) texts.set(tipId, said);
}
