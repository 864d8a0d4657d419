import type { Output } from '../protocol/turn.ts';
import type { Agent, AgentStream, Chat, InvokeOptions } from './agent.ts';
import { textInput } from './connection.ts';

/** A conversation that remembers where it is: the snapshot, or for a client-managed agent the state, of its last turn. */
export function createChat(agent: Agent, options: InvokeOptions = {}): Chat {
  const { snapshotId, sessionId, state, ...rest } = options;
  let place: Pick<InvokeOptions, 'snapshotId' | 'sessionId' | 'state'> = {
    ...(snapshotId !== undefined && { snapshotId }),
    ...(sessionId !== undefined && { sessionId }),
    ...(state && { state }),
  };
  let last: Output | undefined;
  const follow = (output: Output): Output => {
    last = output;
    if (agent.metadata.stateManagement === 'server') place = { sessionId: output.sessionId };
    else if (output.state !== undefined) place = { state: output.state };
    return output;
  };
  const stream: Chat['stream'] = (input, call = {}) => {
    const turn = agent.stream(typeof input === 'string' ? textInput(input) : input, {
      ...rest,
      ...call,
      ...place,
    });
    return followed(turn, follow);
  };
  return {
    get sessionId() {
      return last?.sessionId ?? sessionId;
    },
    get snapshotId() {
      return last?.snapshotId ?? snapshotId;
    },
    get state() {
      return last?.state ?? state;
    },
    stream,
    send: async (input, call) => await stream(input, call).output,
  };
}

/** The same turn; its output is taken note of whether the caller reads the stream, the output or both. */
function followed(turn: AgentStream, follow: (output: Output) => Output): AgentStream {
  let output: Promise<Output> | undefined;
  const ask = (): Promise<Output> => {
    output ??= turn.output.then(follow);
    return output;
  };
  return {
    stream: (async function* () {
      try {
        yield* turn.stream;
      } finally {
        await ask().catch(() => {});
      }
    })(),
    get output() {
      return ask();
    },
  };
}
