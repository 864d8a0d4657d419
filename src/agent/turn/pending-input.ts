import type { Snapshot } from '../../protocol/snapshot.ts';
import { fromPlainState } from '../../session/session-state.ts';
import type { Scope } from '../../store/contract/store.ts';
import { type AgentSpec, fullStore } from '../spec/spec.ts';

/**
 * A pending snapshot together with the messages of its input. The store has the state of the last checkpoint only, and a page
 * that is opened before the first one has to show the user's message.
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
  // An input that does not fit the state fails its turn, not this read.
  const given = await spec.receive(fromPlainState(state), input, run.context ?? {}).catch(() => []);
  return { ...snapshot, state: { ...state, messages: [...messages, ...given] } };
}
