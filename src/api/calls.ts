import { forCaller, rethrow, withCaller } from '../core/async/promises.ts';
import { invalid } from '../core/error.ts';
import { checkNames, type OptionNames } from '../core/options.ts';
import type { JsonSchema, Schema } from '../core/schema/schema.ts';
import type { Message } from '../protocol/message.ts';
import type { MessageOptions } from '../protocol/message-page.ts';
import type { Diff, FileInfo, SteerResult, WaitingSession } from '../protocol/requests.ts';
import type { Page } from '../protocol/session.ts';
import type { Snapshot } from '../protocol/snapshot.ts';
import { outputOfSnapshot } from '../protocol/snapshot-output.ts';
import type { Chunk, Input, Output } from '../protocol/turn.ts';
import type { UndoPlan } from '../protocol/undo.ts';
import type { ListOptions, Lookup } from '../store/contract/store.ts';
import type {
  AgentApi,
  ApiCallOptions,
  ApiInvokeOptions,
  DiffOptions,
  EditChange,
  EditOptions,
  PendingInterrupts,
  RestoreOptions,
  RunHandle,
  SessionRef,
} from './agent-api.ts';

import type { AgentMemory } from './agent-memory.ts';
import { AgentChat, type ChatAgent } from './chat.ts';
import { type Interrupt, interruptsOf, type ResumeInput, toAnswers } from './interrupts.ts';
import {
  describeOutput,
  describeState,
  type SnapshotRef,
  sessionIdOf,
  snapshotIdOf,
  type TurnInput,
  throwIfFailed,
  toInput,
  withCallerTools,
} from './turn-values.ts';
import type {
  AgentStream,
  AgentTypes,
  ChunkOf,
  FailureOptions,
  OutputOf,
  RequestOptions,
  SessionOf,
  WireTypes,
} from './types.ts';

type TurnOptions = ApiInvokeOptions & RequestOptions;

/** The options of a turn in process and over HTTP. */
export const turnOptionNames: OptionNames<TurnOptions & FailureOptions> = {
  sessionId: true,
  snapshotId: true,
  state: true,
  from: true,
  ifHead: true,
  signal: true,
  onReset: true,
  artifacts: true,
  requestId: true,
  tools: true,
  throwOnError: true,
};

/** Options of every call, with those that only an agent of this process has. */
interface Caller extends ApiCallOptions {
  readonly owner?: string;
  readonly remote?: boolean;
}

/** A turn that was begun, as an agent of this process or a client gives it. */
export interface BegunTurn {
  readonly stream: AsyncIterable<Chunk>;
  readonly output: Promise<OutputOf<WireTypes>>;
  /** Adds a message to the turn, once it has started. */
  steer(input: Input, options?: RequestOptions): Promise<SteerResult>;
}

/** Compare and set on a session's head, by its id. */
interface HeadId {
  readonly ifHead?: string;
}

/** A restore with the id of its plan. */
interface RestoreRequest extends Omit<RestoreOptions, 'undo'> {
  readonly undo?: true | string;
}

/** Calls on something that an id names. */
type ById<Api, Names extends keyof Api> = {
  readonly [Name in Names]: Api[Name] extends (ref: never, ...rest: infer Rest) => infer Result
    ? (id: string, ...rest: Rest) => Result
    : never;
};

/** The operations of one agent: turns and reads in their plainest form, by ids. */
export interface AgentOperations<
  Call extends ApiCallOptions = ApiCallOptions,
  Invoke extends ApiInvokeOptions = ApiInvokeOptions,
> extends Pick<
      AgentApi<WireTypes, Call, Invoke>,
      'streamBidi' | 'listSessions' | 'listRuns' | 'getUsage' | 'listDeadRuns'
    >,
    ById<
      AgentApi<WireTypes, Call, Invoke>,
      'listSnapshots' | 'updateSession' | 'deleteSession' | 'watch' | 'abort' | 'retryRun'
    > {
  /** The JSON Schema of a caller's tool. */
  readonly toJsonSchema: (schema: Schema) => JsonSchema;
  /** The options of a turn; others are refused. */
  readonly optionNames: OptionNames<Invoke & RequestOptions & FailureOptions>;
  begin(
    input: Input,
    options: Invoke & RequestOptions,
    follow?: (output: Output) => void,
  ): BegunTurn;
  getSnapshot(lookup: Lookup, options?: Call & MessageOptions): Promise<Snapshot | undefined>;
  getSession(
    sessionId: string,
    options?: Call & MessageOptions,
  ): Promise<SessionOf<WireTypes> | undefined>;
  wait(runId: string, options?: Call): Promise<Snapshot>;
  listInterrupts(options?: Call & ListOptions): Promise<Page<WaitingSession>>;
  steer(runId: string, input: Input, options?: Call & RequestOptions): Promise<SteerResult>;
  restore(snapshotId: string, options?: Call & HeadId & RestoreRequest): Promise<Snapshot>;
  planUndo(snapshotId: string, options?: Call): Promise<UndoPlan>;
  readonly memory: AgentMemory<Call>;
  fork(
    snapshotId: string,
    options?: Call & HeadId & { readonly sessionId?: string },
  ): Promise<Snapshot>;
  edit(
    snapshotId: string,
    change: EditChange,
    options?: Call & HeadId & EditOptions,
  ): Promise<Snapshot>;
  listFiles(lookup: Lookup, options?: Call & ListOptions): Promise<Page<FileInfo>>;
  diff(from: string, to: string, options?: Call & DiffOptions): Promise<Diff>;
  label(snapshotId: string, label: string | null, options?: Call & HeadId): Promise<Snapshot>;
}

type AgentCalls<Call extends ApiCallOptions, Invoke extends ApiInvokeOptions> = Omit<
  AgentApi<WireTypes, Call, Invoke>,
  'name' | '~types' | 'openFile'
>;

/** The calls of {@link AgentApi} over the operations of one agent: written once, for agents of this process and of a server. */
export function createCalls<Call extends ApiCallOptions, Invoke extends ApiInvokeOptions>(
  operations: AgentOperations<Call, Invoke>,
): AgentCalls<Call, Invoke> {
  // Every caller got its options by the types of this agent.
  const toOptions = (options: TurnOptions): Invoke & RequestOptions => {
    checkNames(options, operations.optionNames, 'a turn');
    return withoutFrom(withHeadId(options)) as Invoke & RequestOptions;
  };
  const start = (
    input: Input,
    given: TurnOptions,
    follow?: (output: Output) => void,
  ): BegunTurn => {
    const options = toOptions(given);
    return operations.begin(
      withCallerTools(input, options.tools, operations.toJsonSchema),
      options,
      follow,
    );
  };
  const begin: ChatAgent['stream'] = (input, options, follow) =>
    new StreamedTurn(start(input, options, follow));
  const stream = (input: TurnInput, options: TurnOptions = {}): AgentStream =>
    new StreamedTurn(start(toInput(input), options));
  const run = async (
    input: TurnInput,
    { throwOnError = true, ...options }: TurnOptions & FailureOptions = {},
  ): Promise<OutputOf<WireTypes>> => {
    let output: OutputOf<WireTypes>;
    try {
      output = await start(toInput(input), options).output;
    } catch (error) {
      throw withCaller(error);
    }
    return throwOnError ? throwIfFailed(output) : output;
  };
  const getSession: AgentCalls<Call, Invoke>['getSession'] = async (ref, options) => {
    const session = await operations.getSession(sessionIdOf(ref), options);
    return session && describeState(session);
  };
  const read: ChatAgent['getSession'] = (sessionId, options) =>
    getSession(sessionId, { ...callerOf<Call>(options), signal: options.signal });
  const toHandle: ChatAgent['toHandle'] = ({ snapshotId = '', sessionId }, options) => ({
    ...createRunHandle(calls, snapshotId, callerOf(options)),
    sessionId,
  });

  type RestoreCall = Call & HeadId & RestoreRequest;
  const toRestore = (options: (Call & HeadId & RestoreOptions) | undefined): RestoreCall => {
    const undo = planIdIn(options);
    return { ...options, ...(undo !== undefined && { undo }) } as RestoreCall;
  };

  const calls: AgentCalls<Call, Invoke> = withCallers({
    run,
    runText: run,
    stream,
    streamText: stream,
    async resume(asked, answers, options) {
      const given = toAnswers(asked, answers, (id) => read(id, options ?? {}));
      const resume = given instanceof Promise ? await given : given;
      return await run({ resume }, { ...placeOf(asked), ...options });
    },
    async start(input, options) {
      return toHandle(await run({ ...toInput(input), detach: true }, options), options);
    },
    attach: (ref, options) => createRunHandle(calls, snapshotIdOf(ref), callerOf(options)),
    streamBidi: (options) => operations.streamBidi(options && toOptions(options)),
    chat: (options) => new AgentChat({ stream: begin, toHandle, getSession: read }, options),

    async getSnapshot(ref, options) {
      const lookup = typeof ref === 'string' ? { snapshotId: ref } : (ref as Lookup);
      const snapshot = await operations.getSnapshot(lookup, options);
      return snapshot && describeState(snapshot);
    },
    getSession,
    listSnapshots: (ref, options) => operations.listSnapshots(sessionIdOf(ref), options),
    listSessions: operations.listSessions,
    async listInterrupts(options) {
      const { items, ...page } = await operations.listInterrupts(options);
      return { ...page, items: items.map(withInterrupts) };
    },
    updateSession: (ref, change, options) =>
      operations.updateSession(sessionIdOf(ref), change, options),
    deleteSession: (ref, options) => operations.deleteSession(sessionIdOf(ref), options),
    listRuns: operations.listRuns,
    getUsage: operations.getUsage,
    listDeadRuns: operations.listDeadRuns,

    wait: async (ref, options) => describeState(await operations.wait(snapshotIdOf(ref), options)),
    watch: (ref, options) => operations.watch(snapshotIdOf(ref), options),
    steer: async (ref, input, options) =>
      await operations.steer(snapshotIdOf(ref), toInput(input), options),
    abort: async (ref, options) => await operations.abort(snapshotIdOf(ref), options),
    retryRun: async (ref, options) => await operations.retryRun(snapshotIdOf(ref), options),
    restore: async (ref, options) =>
      describeState(await operations.restore(snapshotIdOf(ref), toRestore(withHeadId(options)))),
    memory: withCallers({ ...operations.memory }),
    planUndo: async (ref, options) => await operations.planUndo(snapshotIdOf(ref), options),
    fork: async (ref, options) =>
      describeState(await operations.fork(snapshotIdOf(ref), withHeadId(options))),
    edit: async (ref, change, options) =>
      describeState(await operations.edit(snapshotIdOf(ref), change, withHeadId(options))),
    listFiles: async (ref, options) => {
      const lookup = typeof ref === 'string' ? { snapshotId: ref } : (ref as Lookup);
      return await operations.listFiles(lookup, options);
    },
    diff: async (from, to, options) =>
      await operations.diff(snapshotIdOf(from), snapshotIdOf(to), options),
    label: async (ref, label, options) =>
      describeState(await operations.label(snapshotIdOf(ref), label, withHeadId(options))),
  });
  return calls;
}

/** The calls, with the code that waits for them in the stacks of their errors. Turns have it already. */
function withCallers<Calls extends object>(calls: Calls): Calls {
  for (const [name, call] of Object.entries(calls)) {
    if (name.startsWith('run') || name.startsWith('stream') || typeof call !== 'function') continue;
    Object.assign(calls, {
      [name]: (...args: unknown[]) => {
        const result = call(...args);
        return result instanceof Promise ? result.catch(rethrow) : result;
      },
    });
  }
  return calls;
}

/** The options that say who calls. They also count for everything that is done with the result of the call. */
function callerOf<Call extends ApiCallOptions>({ owner, remote }: Caller = {}): Call {
  return { owner, remote } as unknown as Call;
}

/** A session that waits, with its interrupts as `agent.resume` takes them. */
export function withInterrupts(session: WaitingSession): PendingInterrupts {
  const read = (): readonly Interrupt[] =>
    interruptsOf({ role: 'model', content: [...session.requests] });
  return Object.defineProperty({ ...session }, 'interrupts', { get: read }) as PendingInterrupts;
}

/** Where a conversation continues. Only the output of an agent without a store has a state and no snapshot. */
function placeOf(asked: SessionRef): Pick<ApiInvokeOptions, 'sessionId' | 'state'> {
  const { sessionId, state } = asked;
  const isStored = 'createdAt' in asked || ('snapshotId' in asked && asked.snapshotId);
  return state === undefined || isStored ? { sessionId } : { state };
}

/** The options with the id of the head that they expect. */
function withHeadId<Options extends { readonly ifHead?: SnapshotRef | null } | undefined>(
  options: Options,
): Options & HeadId {
  const { ifHead } = options ?? {};
  const isGiven = ifHead !== undefined && ifHead !== null;
  const withId = isGiven ? { ...options, ifHead: snapshotIdOf(ifHead) } : options;
  return withId as Options & HeadId;
}

/** The id of the plan that a restore carries out; `true`: whatever can be undone; `undefined`: it undoes nothing. */
function planIdIn({ undo, partial, force }: RestoreOptions = {}): true | string | undefined {
  if (undo === undefined) {
    if (force === true)
      throw invalid('`force` is an option of `undo`: pass `undo: true` or a plan.');
    return undefined;
  }
  if (partial === true) throw invalid('Pass only one of `partial` and `undo`.');
  const id: unknown = undo === true ? undo : undo?.id;
  if (id === true || typeof id === 'string') return id;
  throw invalid('`undo` must be `true` or a plan of planUndo().');
}

/** The options with `from` resolved to a snapshot or a client-held state; `null` stays. */
function withoutFrom<Options extends TurnOptions>(given: Options): Options {
  if (given.from === undefined) return given;
  const { from, ...options } = given;
  if (options.snapshotId !== undefined || options.state !== undefined) {
    throw invalid('Pass only one of `from`, `snapshotId` and `state`.');
  }
  if (from === null) return given;
  const isHeld = typeof from === 'object' && from.snapshotId === undefined && 'state' in from;
  const place = isHeld ? { state: from.state } : { snapshotId: snapshotIdOf(from as SnapshotRef) };
  return { ...options, ...(place as object) } as Options;
}

/** A begun turn with its text apart. Nothing is read, and no output asked for, before the caller does. */
class StreamedTurn implements AgentStream {
  readonly #turn: BegunTurn;
  #text: AsyncIterable<string> | undefined;

  constructor(turn: BegunTurn) {
    this.#turn = turn;
  }

  get stream(): AsyncIterable<Chunk> {
    return this.#turn.stream;
  }

  get textStream(): AsyncIterable<string> {
    this.#text ??= textStreamOf(this.#turn);
    return this.#text;
  }

  get output(): Promise<OutputOf<WireTypes>> {
    return forCaller(this.#turn.output);
  }

  async steer(input: TurnInput, options?: RequestOptions): Promise<SteerResult> {
    return await this.#turn.steer(toInput(input), options);
  }
}

/** The text of the agent itself, without that of its sub-agents. Rejects with a TurnError at the end of a failed turn. */
async function* textStreamOf(turn: BegunTurn): AsyncGenerator<string, void> {
  for await (const { agent, modelChunk } of turn.stream) {
    if (agent !== undefined || modelChunk === undefined) continue;
    for (const part of modelChunk.content) if ('text' in part && part.text !== '') yield part.text;
  }
  throwIfFailed(await turn.output);
}

type RunReads = Pick<AgentApi, 'watch' | 'wait' | 'steer' | 'abort' | 'getSnapshot'>;

/** The handle of a run. Its calls have the options of the caller that it belongs to, such as the owner. */
function createRunHandle(agent: RunReads, id: string, caller: ApiCallOptions): RunHandle {
  const forCaller = <Options extends object>(options?: Options) => ({ ...caller, ...options });
  return {
    id,
    watch: (options) => agent.watch(id, forCaller(options)),
    wait: async ({ throwOnError = true, ...options }: FailureOptions = {}) => {
      const output: Output = outputOfSnapshot(await agent.wait(id, forCaller(options)));
      return describeOutput(throwOnError ? throwIfFailed(output) : output);
    },
    steer: (input, options) => agent.steer(id, input, forCaller(options)),
    async abort(options) {
      const given = forCaller(options);
      // If there is no such run, `wait` says so.
      return (await agent.abort(id, given)) ?? (await agent.wait(id, given)).status;
    },
    status: async (options) => (await agent.getSnapshot(id, forCaller(options)))?.status,
  };
}

/** The calls of a connection that follow from its `send` and `receive`. */
export abstract class ConnectionCalls<Types extends AgentTypes> {
  /** The JSON Schema of a caller's tool. */
  protected abstract readonly toJsonSchema: (schema: Schema) => JsonSchema;

  abstract send(input: Input): Promise<void>;
  abstract receive(): AsyncIterable<ChunkOf<Types>>;

  sendText(text: string, options?: RequestOptions): Promise<void> {
    return this.#sendUnder(toInput(text), options);
  }

  sendMessage(message: Message, options?: RequestOptions): Promise<void> {
    return this.#sendUnder({ message }, options);
  }

  sendResume(resume: ResumeInput, options?: RequestOptions): Promise<void> {
    const { respond, restart } = resume;
    const answers = { respond: respond && [...respond], restart: restart && [...restart] };
    return this.#sendUnder({ resume: answers }, options);
  }

  async #sendUnder(input: Input, { tools, requestId }: RequestOptions = {}): Promise<void> {
    const identified = requestId === undefined ? input : { ...input, requestId };
    await this.send(withCallerTools(identified, tools, this.toJsonSchema));
  }

  async *turn(): AsyncGenerator<ChunkOf<Types>, void, undefined> {
    for await (const chunk of this.receive()) {
      yield chunk;
      if (chunk.turnEnd && chunk.agent === undefined) return;
    }
  }
}
