import type { AgentTypes, Chat, OutputOf } from '../agent/spec/agent.ts';
import type { Input } from '../protocol/turn.ts';
import type { RemoteAgent, RemoteInvokeOptions } from './remote-agent.ts';

/** A text as the input it stands for. */
export function toInput(input: string | Input): Input {
  return typeof input === 'string'
    ? { message: { role: 'user', content: [{ text: input }] } }
    : input;
}

/** A conversation that follows its own snapshot or state from turn to turn. */
export function createChat<Types extends AgentTypes>(
  agent: Pick<RemoteAgent<Types>, 'stream'>,
  options: RemoteInvokeOptions<Types> = {},
): Chat<Types> {
  const { snapshotId, sessionId, state, ifHead, ...rest } = options;
  let place: Pick<RemoteInvokeOptions<Types>, 'snapshotId' | 'sessionId' | 'state' | 'ifHead'> = {
    ...(ifHead !== undefined && { ifHead }),
    ...(snapshotId !== undefined && { snapshotId }),
    ...(sessionId !== undefined && { sessionId }),
    ...(state && { state }),
  };
  let last: OutputOf<Types> | undefined;
  const follow = (output: OutputOf<Types>): OutputOf<Types> => {
    last = output;
    // Only the output of a client-managed agent has a state; without one, a chat that began with one stays there.
    if (output.state) place = { state: output.state };
    else if (!place.state) place = { sessionId: output.sessionId };
    return output;
  };
  const stream: Chat<Types>['stream'] = (input, { signal = rest.signal, requestId } = {}) => {
    const turn = agent.stream(toInput(input), {
      ...rest,
      ...place,
      ...(signal && { signal }),
      ...(requestId !== undefined && { requestId }),
    });
    const output = turn.output.then(follow);
    output.catch(() => {}); // whoever only reads the chunks hears of it there
    return { stream: turn.stream, output };
  };

  return {
    get sessionId() {
      return last?.sessionId ?? sessionId ?? state?.sessionId;
    },
    get snapshotId() {
      return last?.snapshotId ?? snapshotId;
    },
    get state() {
      return last?.state ?? state;
    },
    stream,
    send: (input, callOptions) => stream(input, callOptions).output,
  };
}
