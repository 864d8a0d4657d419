import type { Agent, CallOptions } from '../../agent/contract/agent.ts';
import type { LoadedSnapshot, WireTypes } from '../../api/types.ts';
import { WaymarkError } from '../../core/error.ts';
import { defined } from '../../core/json/json.ts';
import type { Init, Input } from '../../protocol/turn.ts';
import type { OpenCall, RequestContext } from '../http/server-context.ts';
import { startRun } from './turn.ts';

type Snapshot = LoadedSnapshot<WireTypes>;

/** A turn with the turns that answer its interrupts: each answer begins another turn. */
export interface Chain {
  readonly root: Snapshot;
  readonly tip: Snapshot;
  /** The tip waits for an answer, but the session continued with another message, which declined. */
  readonly isLeft: boolean;
}

/** Starts a turn in the background as the first of a chain. It survives this process. */
export async function startChain(
  c: RequestContext,
  call: OpenCall,
  init: Init,
  input: Input,
): Promise<Chain> {
  const { id } = await startRun(c, call, init, input);
  const chain = await readChain(call.agent, id, call.options);
  if (chain) return chain;
  throw new WaymarkError('INTERNAL', 'The run that was started is not in the store.');
}

/** Gives answers to the interrupts that a chain waits with. */
export async function continueChain(
  c: RequestContext,
  call: OpenCall & Pick<Chain, 'tip'>,
  input: Input,
): Promise<void> {
  const { sessionId, snapshotId } = call.tip;
  await startRun(c, call, { sessionId, ifHead: snapshotId }, input);
}

/** Reads the chain that begins with a snapshot; `undefined` for an unknown one. */
export async function readChain(
  agent: Agent,
  snapshotId: string,
  options: CallOptions,
): Promise<Chain | undefined> {
  const root = await agent.getSnapshot({ snapshotId }, options);
  return root && { root, ...(await chainEnd(agent, root, options)) };
}

/** The state of a chain. Any process on the same store can tell, also after the one that started it was killed. */
export function stateOfChain({
  tip,
  isLeft,
}: Omit<Chain, 'root'>): 'working' | 'waiting' | 'completed' | 'failed' | 'cancelled' {
  const { status, finishReason } = tip;
  if (status === 'failed') return 'failed';
  // The worker of one that has expired has died; another one takes over.
  if (status === 'pending' || status === 'expired') return 'working';
  if (isInterrupted(tip)) return isLeft ? 'cancelled' : 'waiting';
  // One that was stopped may have kept its partial answer.
  return status === 'aborted' || finishReason === 'aborted' ? 'cancelled' : 'completed';
}

/** How many pages of a session are searched for the answer to an interrupt. */
const maxPages = 10;
/** How many turns that started from an interrupt are read, the last ones. */
const maxChildren = 5;

/** Follows the answers to the interrupts of a turn. */
async function chainEnd(
  agent: Agent,
  root: Snapshot,
  options: CallOptions,
): Promise<Omit<Chain, 'root'>> {
  let tip = root;
  while (isInterrupted(tip)) {
    const children = await childrenOf(agent, tip, options);
    const answer = children.find((child) => isAnswer(tip, child));
    if (!answer) {
      const isLeft = children.some(({ status }) => status !== 'failed' && status !== 'aborted');
      return { tip, isLeft };
    }
    tip = answer;
  }
  return { tip, isLeft: false };
}

export function isInterrupted({ status, finishReason }: Snapshot): boolean {
  return status === 'succeeded' && finishReason === 'interrupted';
}

/** Whether a turn answers the interrupts of its parent; another message would have declined them. */
export function isAnswer(parent: Snapshot, child: Snapshot): boolean {
  const before = parent.state?.messages?.length ?? 0;
  const added = child.state?.messages?.slice(before) ?? [];
  return !added.some(({ role }) => role === 'user');
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
      ...defined({ cursor }),
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
