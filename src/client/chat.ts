import type { AgentStream, AgentTypes, Chat, OutputOf } from '../agent/agent.ts';
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
  let { snapshotId, sessionId, state } = options;

  const place = (): RemoteInvokeOptions<Types> => {
    if (state !== undefined) return { state };
    return {
      ...(snapshotId !== undefined && { snapshotId }),
      ...(sessionId !== undefined && { sessionId }),
    };
  };
  const follow = (output: OutputOf<Types>): OutputOf<Types> => {
    // A failed turn names the last good place, which is where the next one starts.
    ({ snapshotId, sessionId, state } = output);
    return output;
  };
  const stream: Chat<Types>['stream'] = (input, { signal = options.signal } = {}) => {
    const { onReset } = options;
    const turn: AgentStream<Types> = agent.stream(toInput(input), {
      ...place(),
      ...(signal && { signal }),
      ...(onReset && { onReset }),
    });
    return { stream: turn.stream, output: turn.output.then(follow) };
  };

  return {
    get sessionId() {
      return sessionId ?? state?.sessionId;
    },
    get snapshotId() {
      return snapshotId;
    },
    get state() {
      return state;
    },
    stream,
    send: (input, callOptions) => stream(input, callOptions).output,
  };
}
