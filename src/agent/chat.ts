import type { Input, Output } from '../protocol/turn.ts';
import type { Agent, AgentStream, CallOptions, Chat, InvokeOptions } from './agent.ts';
import { textInput } from './connection.ts';

/** A conversation that remembers where it is: the snapshot, or for a client-managed agent the state, of its last turn. */
export function createChat(agent: Agent, options: InvokeOptions = {}): Chat {
  return new AgentChat(agent, options);
}

// Thousands may be open and idle: each holds where it is, no functions of its own, and nothing of what a store has.
class AgentChat implements Chat {
  readonly #agent: Agent;
  readonly #given: InvokeOptions;
  /** Where the next turn goes on; at first what was given. */
  #place: Pick<InvokeOptions, 'snapshotId' | 'sessionId' | 'state'> | undefined;
  #last: Pick<Output, 'snapshotId' | 'sessionId' | 'state'> | undefined;

  constructor(agent: Agent, given: InvokeOptions) {
    this.#agent = agent;
    this.#given = given;
  }

  get sessionId(): string | undefined {
    return this.#last?.sessionId ?? this.#given.sessionId;
  }

  get snapshotId(): string | undefined {
    return this.#last?.snapshotId ?? this.#given.snapshotId;
  }

  get state(): Chat['state'] {
    return this.#last?.state ?? this.#given.state;
  }

  stream(input: string | Input, call: CallOptions = {}): AgentStream {
    const { snapshotId, sessionId, state, ...options } = this.#given;
    const given = {
      ...(snapshotId !== undefined && { snapshotId }),
      ...(sessionId !== undefined && { sessionId }),
      ...(state && { state }),
    };
    const turn = this.#agent.stream(typeof input === 'string' ? textInput(input) : input, {
      ...options,
      ...call,
      ...(this.#place ?? given),
    });
    return followed(turn, (output) => this.#follow(output));
  }

  async send(input: string | Input, call?: CallOptions): Promise<Output> {
    return await this.stream(input, call).output;
  }

  #follow(output: Output): Output {
    const { sessionId, snapshotId, state } = output;
    this.#last = {
      sessionId,
      ...(snapshotId !== undefined && { snapshotId }),
      ...(state && { state }),
    };
    if (this.#agent.metadata.stateManagement === 'server') this.#place = { sessionId };
    else if (state !== undefined) this.#place = { state };
    return output;
  }
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
