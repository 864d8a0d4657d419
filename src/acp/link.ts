import type {
  AgentCapabilities,
  ClientConnection,
  ContentBlock,
  CreateElicitationRequest,
  CreateElicitationResponse,
  NewSessionResponse,
  PromptResponse,
  RequestPermissionRequest,
  RequestPermissionResponse,
  SessionUpdate,
} from '@agentclientprotocol/sdk';
import { failedPrecondition, messageOf, toWaymarkError, WaymarkError } from '../core/error.ts';
import type { Json } from '../core/json/json.ts';
import { after, systemClock, withTimeout } from '../core/time.ts';
import { plainText } from './messages.ts';
import type { AcpSettings } from './options.ts';
import { Program } from './program.ts';
import { loadSdk } from './sdk.ts';

/** Something that a program says or asks during a turn. */
export type LinkEvent =
  | { readonly kind: 'update'; readonly update: SessionUpdate }
  | Question
  | { readonly kind: 'end'; readonly response: PromptResponse };

export type Question =
  | {
      readonly kind: 'permission';
      readonly request: RequestPermissionRequest;
      readonly answer: (response: RequestPermissionResponse) => void;
    }
  | {
      readonly kind: 'form';
      readonly request: CreateElicitationRequest;
      readonly answer: (response: CreateElicitationResponse) => void;
    };

/** The answer of the user to a question. */
export interface Decision {
  readonly allow: boolean;
  /** What they chose or wrote. */
  readonly value?: Json | undefined;
}

/** Updates that may wait to be taken before no more messages are read. */
const maxWaiting = 500;
/** How long a program may take to end its turn after it was cancelled. */
const cancelMs = 3_000;

/** The history of a session that was loaded: its prompts, as it replays them. */
export interface Replayed {
  readonly prompts: number;
  readonly last: string;
  /** The text of the agent after the last prompt. */
  readonly said: string;
}

/** A running program with one of its sessions. */
export class Link {
  /** The id of the program's session. */
  sessionId = '';
  /** The turn that the session has seen last. */
  tip = '';
  readonly agent: string;
  readonly capabilities: AgentCapabilities;
  /** What the program has said since the last prompt. */
  said: ContentBlock[] = [];
  /** Questions that the user has to answer. */
  readonly open = new Map<string, Question>();
  /** Decisions of the user about questions of an earlier process, which the program will ask again. */
  readonly decided: (Decision & { readonly key: string })[] = [];
  readonly #settings: AcpSettings;
  readonly #program: Program;
  readonly #connection: ClientConnection;
  readonly #inbox: Inbox;
  #isPrompting = false;
  #endSoon: (() => void) | undefined;

  private constructor(
    settings: AcpSettings,
    program: Program,
    connection: ClientConnection,
    inbox: Inbox,
    { agent, capabilities }: Pick<Link, 'agent' | 'capabilities'>,
  ) {
    this.#settings = settings;
    this.#program = program;
    this.#connection = connection;
    this.#inbox = inbox;
    this.agent = agent;
    this.capabilities = capabilities;
    program.failed.catch(() => inbox.wake());
  }

  static async start(settings: AcpSettings, cwd: string, signal: AbortSignal): Promise<Link> {
    const { client, PROTOCOL_VERSION } = await loadSdk();
    const inbox = new Inbox();
    const program = new Program(settings, cwd, () => inbox.room());
    const connection = client({ name: 'waymark' })
      .onNotification('session/update', ({ params: { update } }) =>
        inbox.add({ kind: 'update', update }),
      )
      .onRequest(
        'session/request_permission',
        async ({ params: request }) =>
          await new Promise((answer) => inbox.add({ kind: 'permission', request, answer })),
      )
      .onRequest('elicitation/create', async ({ params: request }) => {
        if (request.mode !== 'form') return { action: 'decline' };
        return await new Promise((answer) => inbox.add({ kind: 'form', request, answer }));
      })
      .connect(program.stream);
    const starting = connection.agent.request('initialize', {
      protocolVersion: PROTOCOL_VERSION,
      clientInfo: { name: 'waymark', version: '1' },
      clientCapabilities: { elicitation: { form: {} } },
    });
    const stop = (): void => program.end(new WaymarkError('CANCELLED', 'The turn was stopped.'));
    signal.addEventListener('abort', stop, { once: true });
    try {
      const {
        protocolVersion,
        agentCapabilities = {},
        agentInfo,
      } = await inTime(settings, program, starting);
      if (protocolVersion !== PROTOCOL_VERSION) {
        throw failedPrecondition(
          `The program of agent "${settings.name}" speaks version ${protocolVersion} of ACP. Version ${PROTOCOL_VERSION} is needed.`,
        );
      }
      const about = `${agentInfo?.title ?? agentInfo?.name ?? settings.command[0]} ${agentInfo?.version ?? ''}`;
      return new Link(settings, program, connection, inbox, {
        agent: about.trim().slice(0, 200),
        capabilities: agentCapabilities ?? {},
      });
    } catch (error) {
      program.end(toFailure(error, settings));
      throw program.failure ?? error;
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  get isAlive(): boolean {
    return this.#program.failure === undefined;
  }

  async newSession(cwd: string): Promise<void> {
    const mcpServers = [...this.#settings.mcpServers];
    const { sessionId } = await this.#call<NewSessionResponse>('session/new', { cwd, mcpServers });
    if (typeof sessionId !== 'string') throw noSessionId(this.#settings.name);
    this.sessionId = sessionId;
    await this.#configure();
  }

  /** Loads a session, and says which prompts it has seen. */
  async load(sessionId: string, cwd: string): Promise<Replayed> {
    const mcpServers = [...this.#settings.mcpServers];
    let prompts = 0;
    let last: ContentBlock[] = [];
    let said: ContentBlock[] = [];
    let speaker = '';
    // Taken as they come: a long conversation must not wait in memory.
    this.#inbox.take((update) => {
      if (update.sessionUpdate !== 'user_message_chunk') {
        if (update.sessionUpdate === 'agent_message_chunk') said.push(update.content);
        speaker = '';
        return;
      }
      const id = update.messageId ?? 'user';
      if (speaker !== id) {
        prompts++;
        last = [];
        said = [];
      }
      speaker = id;
      last.push(update.content);
    });
    try {
      await this.#call('session/load', { sessionId, cwd, mcpServers });
      await settled();
    } finally {
      this.#inbox.take(undefined);
    }
    this.sessionId = sessionId;
    await this.#configure();
    return { prompts, last: plainText(last), said: plainText(said) };
  }

  async #configure(): Promise<void> {
    const { mode: modeId, config } = this.#settings;
    const { sessionId } = this;
    if (modeId !== undefined) await this.#call('session/set_mode', { sessionId, modeId });
    for (const [configId, value] of Object.entries(config)) {
      const set = typeof value === 'boolean' ? { type: 'boolean' as const, value } : { value };
      await this.#call('session/set_config_option', { sessionId, configId, ...set });
    }
  }

  /** Sends a prompt. What follows comes from `next`, and ends with `end`. */
  prompt(prompt: ContentBlock[]): void {
    this.#isPrompting = true;
    this.said = [];
    this.#program.startTurn();
    const { sessionId } = this;
    this.#connection.agent.request('session/prompt', { sessionId, prompt }).then(
      async (response) => {
        await settled();
        this.#isPrompting = false;
        this.#inbox.add({ kind: 'end', response });
      },
      async (error: unknown) => {
        await this.#program.whyClosed(error);
        this.fail(error);
      },
    );
  }

  /** The next event. Rejects when the program has failed, or was silent for too long. */
  async next(signal: AbortSignal): Promise<LinkEvent> {
    const { name, idleTimeout } = this.#settings;
    const wake = (): void => this.#inbox.wake();
    signal.addEventListener('abort', wake, { once: true });
    const cancel = after(systemClock, idleTimeout, () =>
      this.fail(
        new WaymarkError(
          'DEADLINE_EXCEEDED',
          `The program of agent "${name}" has not said anything for ${idleTimeout} ms.`,
        ),
      ),
    );
    try {
      for (;;) {
        const event = this.#inbox.shift();
        if (event) return event;
        if (this.failure) throw this.failure;
        if (signal.aborted) throw new WaymarkError('CANCELLED', 'The turn was stopped.');
        await this.#inbox.arrived();
      }
    } finally {
      cancel();
      signal.removeEventListener('abort', wake);
    }
  }

  /** The questions that wait to be taken already. */
  takeQuestions(): readonly Question[] {
    return this.#inbox.takeQuestions();
  }

  /** Stops the running prompt, and waits until the program has stopped. One that does not is ended. */
  async cancel(): Promise<void> {
    for (const question of this.open.values()) refuse(question);
    this.open.clear();
    if (!this.#isPrompting || !this.isAlive) return;
    const { sessionId } = this;
    const deadline = AbortSignal.timeout(cancelMs);
    try {
      await this.#connection.agent.notify('session/cancel', { sessionId });
      for (;;) {
        const event = await this.next(deadline);
        if (event.kind === 'end') return;
        if (event.kind !== 'update') refuse(event);
      }
    } catch {
      this.fail(new WaymarkError('CANCELLED', 'The program did not stop when it was cancelled.'));
    }
  }

  /** Keeps the program for the next turn, for a while. */
  rest(): void {
    const timer = setTimeout(() => this.end(), this.#settings.keepAlive);
    timer.unref();
    this.#endSoon = () => clearTimeout(timer);
    this.#program.hold(false);
  }

  wake(): void {
    this.#endSoon?.();
    this.#program.hold(true);
  }

  fail(error: unknown): void {
    this.#program.end(toFailure(error, this.#settings));
    this.#connection.close();
  }

  end(): void {
    this.fail(new WaymarkError('CANCELLED', 'The program was ended.'));
  }

  get failure(): WaymarkError | undefined {
    return this.#program.failure;
  }

  #call<Response>(method: string, params: object): Promise<Response> {
    const work = this.#connection.agent.request<Response>(method, params);
    return inTime(this.#settings, this.#program, work);
  }
}

/** The events of a program that no turn has taken yet. */
class Inbox {
  readonly #events: LinkEvent[] = [];
  #arrived: (() => void) | undefined;
  #taken: (() => void) | undefined;
  #sink: ((update: SessionUpdate) => void) | undefined;

  add(event: LinkEvent): void {
    if (this.#sink) {
      if (event.kind === 'update') this.#sink(event.update);
      else if (event.kind !== 'end') refuse(event);
      return;
    }
    this.#events.push(event);
    this.wake();
  }

  /** Lets `arrived` return, also without an event. */
  wake(): void {
    this.#arrived?.();
  }

  /** Passes updates on instead of keeping them. */
  take(sink: ((update: SessionUpdate) => void) | undefined): void {
    this.#sink = sink;
  }

  shift(): LinkEvent | undefined {
    const event = this.#events.shift();
    this.#taken?.();
    return event;
  }

  async arrived(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#arrived = resolve;
    });
  }

  takeQuestions(): readonly Question[] {
    const taken: Question[] = [];
    for (let [first] = this.#events; first; [first] = this.#events) {
      if (first.kind !== 'permission' && first.kind !== 'form') break;
      taken.push(first);
      this.#events.shift();
    }
    return taken;
  }

  /** Resolves when few enough events wait. */
  async room(): Promise<void> {
    while (this.#events.length >= maxWaiting) {
      await new Promise<void>((resolve) => {
        this.#taken = resolve;
      });
    }
  }
}

function refuse(question: Question): void {
  if (question.kind === 'form') question.answer({ action: 'cancel' });
  else question.answer({ outcome: { outcome: 'cancelled' } });
}

/** The SDK handles updates in microtasks, and may resolve a response before the updates that came earlier. */
async function settled(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

async function inTime<Value>(
  { name, startTimeout }: AcpSettings,
  program: Program,
  work: Promise<Value>,
): Promise<Value> {
  const known = work.catch(async (error: unknown) => {
    await program.whyClosed(error);
    throw error;
  });
  known.catch(() => {});
  return await withTimeout(Promise.race([known, program.failed]), {
    clock: systemClock,
    ms: startTimeout,
    error: () =>
      new WaymarkError(
        'DEADLINE_EXCEEDED',
        `The program of agent "${name}" has not answered within ${startTimeout} ms.`,
      ),
  });
}

function noSessionId(name: string): WaymarkError {
  return new WaymarkError(
    'INTERNAL',
    `The program of agent "${name}" opened a session without an id.`,
  );
}

function toFailure(error: unknown, { name, command }: AcpSettings): WaymarkError {
  if (typeof Object(error).code !== 'number') return toWaymarkError(error);
  if (Object(error).code === -32_000) {
    return failedPrecondition(
      `Agent "${name}" needs a login. Run ${command.join(' ')} in a terminal once and log in, or pass its API key in \`env\`.`,
      { cause: error, publicMessage: `Agent "${name}" needs a login.` },
    );
  }
  return new WaymarkError(
    'INTERNAL',
    `The program of agent "${name}" answered with an error: ${messageOf(error).slice(0, 600)}`,
    { cause: error, publicMessage: `The program of agent "${name}" answered with an error.` },
  );
}
