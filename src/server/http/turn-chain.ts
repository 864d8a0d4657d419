import type { Agent, CallOptions } from '../../agent/spec/agent.ts';
import type { LoadedSnapshot, WireTypes } from '../../api/types.ts';

type Snapshot = LoadedSnapshot<WireTypes>;

/** The end of a chain of turns: each answer to an interrupt begins another turn. */
export interface ChainEnd {
  readonly tip: Snapshot;
  /** The tip waits for an answer, but the session continued with another message, which declined. */
  readonly isLeft: boolean;
}

/** How many pages of a session are searched for the answer to an interrupt. */
const maxPages = 10;
/** How many turns that started from an interrupt are read, the last ones. */
const maxChildren = 5;

/** Follows the answers to the interrupts of a turn. */
export async function chainEnd(
  agent: Agent,
  root: Snapshot,
  options: CallOptions,
): Promise<ChainEnd> {
  let tip = root;
  while (isInterrupted(tip)) {
    const children = await childrenOf(agent, tip, options);
    const answer = children.find((child) => isAnswer(tip, child));
    if (!answer) {
      return { tip, isLeft: children.some(({ status }) => isSuccessful(status)) };
    }
    tip = answer;
  }
  return { tip, isLeft: false };
}

/** Whether a snapshot waits for answers. */
export function isInterrupted({ status, finishReason }: Snapshot): boolean {
  return status === 'succeeded' && finishReason === 'interrupted';
}

/** Whether a turn answers the interrupts of its parent; another message would have declined them. */
export function isAnswer(parent: Snapshot, child: Snapshot): boolean {
  const before = parent.state?.messages?.length ?? 0;
  const added = child.state?.messages?.slice(before) ?? [];
  return !added.some(({ role }) => role === 'user');
}

function isSuccessful(status: Snapshot['status']): boolean {
  return status !== 'failed' && status !== 'aborted';
}

/** The turns that started from a snapshot, the last one first. */
async function childrenOf(
  agent: Agent,
  { sessionId, snapshotId }: Snapshot,
  options: CallOptions,
): Promise<readonly Snapshot[]> {
  const ids = new Set<string>();
  const running = (await agent.getSession(sessionId, options))?.running;
  let cursor: string | undefined;
  for (let pages = 0; agent.metadata.timeline && pages < maxPages; pages++) {
    const page = await agent.listSnapshots(sessionId, {
      ...options,
      includeOrphaned: true,
      limit: 100,
      ...(cursor !== undefined && { cursor }),
    });
    for (const each of page.items) if (each.parentId === snapshotId) ids.add(each.snapshotId);
    if (page.next === undefined) break;
    cursor = page.next;
  }
  if (running !== undefined) ids.add(running);
  const last = [...ids].slice(-maxChildren).reverse();
  const read = await Promise.all(last.map((id) => agent.getSnapshot({ snapshotId: id }, options)));
  return read.filter((child): child is Snapshot => child?.parentId === snapshotId);
}
