import type { Input, Output } from '../../protocol/turn.ts';
import type {
  AgentStream,
  CallOptions,
  Chat,
  InvokeOptions,
  RequestOptions,
  RunOptions,
} from '../spec/agent.ts';
import { textInput } from './connection.ts';

/** What a chat needs of its agent. */
export interface ChatAgent {
  readonly isServerManaged: boolean;
  /** Runs one turn; `follow` hears of its output, whether the caller reads the stream, the output or both. */
  stream(input: Input, options: RunOptions, follow: (output: Output) => void): AgentStream;
}

/**
 * A conversation that remembers where it is: the snapshot, or for a client-managed agent the state, of its last turn.
 * Thousands may be open and idle: each holds where it is, no functions of its own, and nothing of what a store has.
 */
export class AgentChat implements Chat {
  readonly #agent: ChatAgent;
  readonly #given: InvokeOptions;
  /** Where the last turn left it; before the first one, what was given counts. */
  #sessionId: string | undefined;
  #snapshotId: string | undefined;
  #state: Chat['state'];

  constructor(agent: ChatAgent, given: InvokeOptions = nothingGiven) {
    this.#agent = agent;
    this.#given = given;
  }

  get sessionId(): string | undefined {
    return this.#sessionId ?? this.#given.sessionId ?? this.#given.state?.sessionId;
  }

  get snapshotId(): string | undefined {
    return this.#snapshotId ?? this.#given.snapshotId;
  }

  get state(): Chat['state'] {
    return this.#state ?? this.#given.state;
  }

  stream(input: string | Input, call: CallOptions & RequestOptions = {}): AgentStream {
    const { snapshotId: _, sessionId: __, state: ___, ifHead: ____, ...options } = this.#given;
    return this.#agent.stream(
      typeof input === 'string' ? textInput(input) : input,
      { ...options, ...call, ...this.#place() },
      (output) => this.#follow(output),
    );
  }

  async send(input: string | Input, call?: CallOptions & RequestOptions): Promise<Output> {
    return await this.stream(input, call).output;
  }

  /** Where the next turn goes on. */
  #place(): Pick<InvokeOptions, 'snapshotId' | 'sessionId' | 'state' | 'ifHead'> {
    if (!this.#agent.isServerManaged && this.#state !== undefined) return { state: this.#state };
    if (this.#agent.isServerManaged && this.#sessionId !== undefined) {
      return { sessionId: this.#sessionId };
    }
    const { snapshotId, sessionId, state, ifHead } = this.#given;
    return {
      ...(ifHead !== undefined && { ifHead }),
      ...(snapshotId !== undefined && { snapshotId }),
      ...(sessionId !== undefined && { sessionId }),
      ...(state && { state }),
    };
  }

  #follow({ sessionId, snapshotId, state = this.#state }: Output): void {
    this.#sessionId = sessionId;
    this.#snapshotId = snapshotId;
    this.#state = state;
  }
}

const nothingGiven: InvokeOptions = {};
