import { failedPrecondition } from '../core/error.ts';
import { defined } from '../core/json/json.ts';
import type { SteerResult } from '../protocol/requests.ts';
import type { Input, Output } from '../protocol/turn.ts';
import type { AgentApi, ApiCallOptions, ApiInvokeOptions, Chat, StartedRun } from './agent-api.ts';
import { type Answers, toAnswers } from './interrupts.ts';

import { type TurnInput, throwIfFailed, toInput } from './turn-values.ts';
import type { AgentStream, FailureOptions, OutputOf, RequestOptions, WireTypes } from './types.ts';

type TurnOptions = ApiInvokeOptions & RequestOptions;
type ChatCall = ApiCallOptions & RequestOptions;

export interface ChatAgent {
  /** Runs one turn; `follow` gets its output, whether the caller reads the stream, the output or both. */
  stream(input: Input, options: TurnOptions, follow: (output: Output) => void): AgentStream;
  /** The handle of a run; `options` are those of the turn that started it. */
  toHandle(started: Output, options: ApiCallOptions | undefined): StartedRun;
  getSession(sessionId: string, options: TurnOptions): ReturnType<AgentApi['getSession']>;
}

/**
 * A conversation that remembers where it is: the session, or for a client-managed agent the state, of its last turn. Thousands
 * may be open and idle, so a chat holds no closures and no data that the store has.
 */
export class AgentChat implements Chat {
  readonly #agent: ChatAgent;
  readonly #given: ApiInvokeOptions;
  /** Where the last turn ended; before the first one, the given options count. */
  #sessionId: string | undefined;
  #snapshotId: string | undefined;
  #state: Chat['state'];
  #turn: AgentStream | undefined;

  constructor(agent: ChatAgent, given: ApiInvokeOptions = nothingGiven) {
    this.#agent = agent;
    this.#given = given;
  }

  get sessionId(): string | undefined {
    return this.#sessionId ?? this.#given.sessionId ?? this.#given.state?.sessionId;
  }

  get snapshotId(): string | undefined {
    const { snapshotId, from } = this.#given;
    // The output of an agent without a store has no snapshot.
    const start = typeof from === 'object' ? from?.snapshotId : from;
    return this.#snapshotId ?? snapshotId ?? start;
  }

  get state(): Chat['state'] {
    return this.#state ?? this.#given.state;
  }

  stream(input: TurnInput, call: ChatCall = {}): AgentStream {
    const all = { ...withoutPlace(this.#given), ...call, ...this.#place() };
    const turn = this.#agent.stream(toInput(input), all, (output) => {
      if (this.#turn === turn) this.#turn = undefined;
      this.#follow(output);
    });
    this.#turn = turn;
    return turn;
  }

  async steer(input: TurnInput, options?: RequestOptions): Promise<SteerResult> {
    if (this.#turn !== undefined) return await this.#turn.steer(input, options);
    throw failedPrecondition('This chat has no running turn. Use `send`.');
  }

  async send(
    input: TurnInput,
    { throwOnError = true, ...call }: ChatCall & FailureOptions = {},
  ): Promise<OutputOf<WireTypes>> {
    const output = await this.stream(input, call).output;
    return throwOnError ? throwIfFailed(output) : output;
  }

  async resume(answers: Answers, call?: ChatCall & FailureOptions): Promise<OutputOf<WireTypes>> {
    const given = toAnswers(this, answers, (id) =>
      this.#agent.getSession(id, { ...this.#given, ...call }),
    );
    return await this.send({ resume: given instanceof Promise ? await given : given }, call);
  }

  async start(input: TurnInput, call?: ChatCall): Promise<StartedRun> {
    const output = await this.stream({ ...toInput(input), detach: true }, call).output;
    return this.#agent.toHandle(throwIfFailed(output), { ...this.#given, ...call });
  }

  /** Where the next turn continues. */
  #place(): Pick<ApiInvokeOptions, 'snapshotId' | 'sessionId' | 'state' | 'ifHead' | 'from'> {
    if (this.#state !== undefined) return { state: this.#state };
    // A chat that began with a state the server does not return stays there.
    if (this.#sessionId !== undefined && this.#given.state === undefined) {
      return { sessionId: this.#sessionId };
    }
    const { snapshotId, sessionId, state, ifHead, from } = this.#given;
    return defined({ ifHead, snapshotId, sessionId, from, state });
  }

  #follow({ sessionId, snapshotId, state = this.#state }: Output): void {
    this.#sessionId = sessionId;
    this.#snapshotId = snapshotId;
    this.#state = state;
  }
}

const nothingGiven: ApiInvokeOptions = {};

/** The options that do not say where to start. */
function withoutPlace(given: ApiInvokeOptions): ApiInvokeOptions {
  if (given === nothingGiven) return given;
  const { snapshotId: _, sessionId: __, state: ___, ifHead: ____, from: _____, ...options } = given;
  return options;
}
