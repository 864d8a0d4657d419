import type { AgentTypes } from '../api/types.ts';
import type { Init } from '../protocol/turn.ts';
import type { RemoteInvokeOptions } from './remote-agent.ts';

/** The part of the options that says where to start. What is not given is not part of its JSON. */
export function toInit<Types extends AgentTypes>({
  snapshotId,
  sessionId,
  state,
  from,
  ifHead,
}: RemoteInvokeOptions<Types>): Init {
  // A snapshot or an output has been replaced by its id, and the server checks the custom state.
  return { ifHead, from, snapshotId, sessionId, state } as Init;
}
