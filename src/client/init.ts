import type { AgentTypes } from '../api/types.ts';
import type { State } from '../protocol/state.ts';
import type { Init } from '../protocol/turn.ts';
import type { RemoteInvokeOptions } from './remote-agent.ts';

/** The part of the options that says where to start; nothing when they say nothing. */
export function toInit<Types extends AgentTypes>({
  snapshotId,
  sessionId,
  state,
  from,
  ifHead,
}: RemoteInvokeOptions<Types>): { init?: Init } {
  if ([snapshotId, sessionId, state, from, ifHead].every((each) => each === undefined)) return {};
  return {
    init: {
      // A snapshot or an output has been replaced by its id.
      ...(ifHead !== undefined && { ifHead: ifHead as string | null }),
      ...(from === null && { from }),
      ...(snapshotId !== undefined && { snapshotId }),
      ...(sessionId !== undefined && { sessionId }),
      // Its custom part has the agent's type, which the server checks.
      ...(state !== undefined && { state: state as State }),
    },
  };
}
