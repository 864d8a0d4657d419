import type { Input, Output } from '../protocol/turn.ts';
import type { AgentStream, CallOptions, Chat, InvokeOptions } from './agent.ts';
import { textInput } from './connection.ts';

/** What a chat needs of its agent. */
export interface ChatAgent {
  readonly isServerManaged: boolean;
  /** Runs one turn; `follow` hears of its output, whether the caller reads the stream, the output or both. */
  stream(input: Input, options: InvokeOptions, follow: (output: Output) => void): AgentStream;
}

/**
 * A conversation that remembers where it is: the snapshot, or for a client-managed agent the state, of its last turn.
 * Thousands may be open and idle: each holds where it is, no functions of its own, and nothing of what a store has.
 */
export class AgentChat implements Chat {
  readonly #agent: ChatAgent;
  readonly #given: InvokeOptions;
  /** Where the next turn goes on; at first what was given. */
  #place: Pick<InvokeOptions, 'snapshotId' | 'sessionId' | 'state'> | undefined;
  #last: Pick<Output, 'snapshotId' | 'sessionId' | 'state'> | undefined;

  constructor(agent: ChatAgent, given: InvokeOptions = {}) {
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
    return this.#agent.stream(
      typeof input === 'string' ? textInput(input) : input,
      { ...options, ...call, ...(this.#place ?? given) },
      (output) => this.#follow(output),
    );
  }

  async send(input: string | Input, call?: CallOptions): Promise<Output> {
    return await this.stream(input, call).output;
  }

  #follow({ sessionId, snapshotId, state }: Output): void {
    this.#last = {
      sessionId,
      ...(snapshotId !== undefined && { snapshotId }),
      ...(state && { state }),
    };
    if (this.#agent.isServerManaged) this.#place = { sessionId };
    else if (state !== undefined) this.#place = { state };
  }
}
