import { reachesEnd } from '../../protocol/message-page.ts';
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
  readAgain: () => Promise<Snapshot | undefined>,
): Promise<Snapshot> {
  const { status, state, snapshotId, messageRange } = snapshot;
  if (state === undefined || (status !== 'pending' && status !== 'expired')) return snapshot;
  if (!reachesEnd(snapshot)) return snapshot;
  const run = await fullStore(spec)?.runs?.getRun(scope, snapshotId);
  // Its first checkpoint or its end, which have the input, may have been written after the snapshot was read.
  if (run === undefined || run.midTurn) return (await readAgain()) ?? snapshot;
  const input = run.inputs[run.inputsDone];
  if (input === undefined) return snapshot;
  const { messages = [] } = state;
  // An input that does not fit the state fails its turn, not this read.
  const given = await spec.receive(fromPlainState(state), input, run.context ?? {}).catch(() => []);
  return {
    ...snapshot,
    state: { ...state, messages: [...messages, ...given] },
    ...(messageRange && {
      messageRange: { ...messageRange, total: messageRange.total + given.length },
    }),
  };
}
