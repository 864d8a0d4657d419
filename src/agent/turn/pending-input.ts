import type { Snapshot } from '../../protocol/snapshot.ts';
import { fromPlainState } from '../../session/session-state.ts';
import type { Scope } from '../../store/contract/store.ts';
import { type AgentSpec, fullStore } from '../spec/spec.ts';

/**
 * A snapshot that is being worked on, with the messages its turn was given: a store knows its state as of the last
 * checkpoint, and a page that comes before the first one wants to see what was asked.
 */
export async function withPendingInput(
  spec: Pick<AgentSpec, 'store' | 'receive'>,
  scope: Scope,
  snapshot: Snapshot,
): Promise<Snapshot> {
  const { status, state, snapshotId } = snapshot;
  if (state === undefined || (status !== 'pending' && status !== 'expired')) return snapshot;
  const run = await fullStore(spec)?.runs?.getRun(scope, snapshotId);
  const input = run?.inputs[run.inputsDone];
  if (run === undefined || input === undefined || run.midTurn) return snapshot;
  const { messages = [] } = state;
  // An input that turns out to be none for this state ends its turn, not this look at it.
  const given = await spec.receive(fromPlainState(state), input, run.context ?? {}).catch(() => []);
  return { ...snapshot, state: { ...state, messages: [...messages, ...given] } };
}
