import type { WebSocket } from 'ws';
import type { Connection } from '../../agent/connection/connection.ts';
import type { Agent } from '../../agent/contract/agent.ts';
import { internalsOf } from '../../agent/define/create-agent.ts';
import type { AgentConnection } from '../../api/types.ts';
import { linkSignals } from '../../core/async/signal.ts';
import {
  assertNever,
  type ErrorBody,
  failedPrecondition,
  invalid,
  WaymarkError,
} from '../../core/error.ts';
import { isJsonObject, type Json } from '../../core/json/json.ts';
import { after } from '../../core/time.ts';
import type { ClientFrame } from '../../protocol/frames.ts';
import type { Chunk, Input, Output } from '../../protocol/turn.ts';
import { toWireError } from '../http/answer.ts';
import { type Caller, ownerOf } from '../http/auth.ts';
import { logFault } from '../http/log.ts';
import { checkCall, findAgent, type ServerContext, type Subject } from '../http/server-context.ts';
import { cursorFeed, type FeedBatch, isTurnEnd, toPublicOutput } from '../stream/feed.ts';
import { checkBackgroundRuns, invokeOptions } from '../stream/turn.ts';
import {
  closeCodes,
  createFrameSocket,
  type FrameHandler,
  FrameReader,
  type FrameSocket,
  WaitingInputs,
} from './socket.ts';
import { artifactForm } from './turns.ts';

export interface ConnectOptions {
  readonly agent: string;
  readonly request: Request;
  /** Says who is calling; gets the request with the `authorization` of the first frame. */
  readonly identify: (request: Request) => Promise<Caller>;
}

/** Serves one WebSocket: a connection of many turns, up to its output. */
export function serveConnection(
  serverContext: ServerContext,
  socket: WebSocket,
  options: ConnectOptions,
): void {
  const connection = new SocketConnection(serverContext, socket, options);
  socket.on('message', (data, isBinary) =>
    connection.frames.receive(isBinary ? undefined : String(data)),
  );
  socket.once('close', () => connection.left());
}

class SocketConnection implements FrameHandler {
  readonly frames: FrameReader;
  readonly #serverContext: ServerContext;
  readonly #options: ConnectOptions;
  readonly #socket: FrameSocket;
  readonly #reader;
  #agent: Agent | undefined;
  #caller: Caller | undefined;
  #line: AgentConnection | undefined;
  #opened: Promise<AgentConnection> | undefined;
  isOver = false;
  readonly #inputs: WaitingInputs;
  readonly #shown: (chunk: Chunk) => Chunk;
  #leave: () => void = () => {};
  // The session that is being talked to, as far as it is known.
  #subject: Subject = {};
  #judged: Promise<unknown> = Promise.resolve();
  // An idle connection does not keep a server that shuts down.
  readonly #endIdle = (): void => {
    if (this.#inputs.isEmpty) this.#reader.abort(this.#serverContext.lifetime.closing.reason);
  };
  readonly #stopTimer: () => void;

  constructor(serverContext: ServerContext, socket: WebSocket, options: ConnectOptions) {
    const { clock, limits, lifetime } = serverContext;
    this.#serverContext = serverContext;
    this.#options = options;
    this.#shown = artifactForm(options.request.url);
    this.#socket = createFrameSocket(socket, serverContext);
    this.frames = new FrameReader(this.#socket, limits, this);
    this.#inputs = new WaitingInputs(serverContext);
    this.#reader = linkSignals(lifetime.ending);
    this.#reader.signal.addEventListener('abort', () => this.#end());
    lifetime.closing.addEventListener('abort', this.#endIdle);
    this.#stopTimer = after(clock, limits.authTimeout, () => {
      if (this.#opened) return;
      void this.#finish(
        new WaymarkError(
          'DEADLINE_EXCEEDED',
          `No init frame was accepted within ${limits.authTimeout} ms. Send it first.`,
        ),
      );
    });
  }

  fail(error: unknown): void {
    void this.#finish(error);
  }

  async identify(first: Json | undefined): Promise<void> {
    const { request, identify } = this.#options;
    const { authorization } = isJsonObject(first) ? first : {};
    const authorized = withAuthorization(request, authorization);
    const caller = await identify(authorized);
    if (this.isOver) return;
    this.#caller = caller;
    this.#leave = this.#serverContext.presence.enter({
      caller,
      request: authorized,
      end: (reason) => void this.#finish(reason),
    });
  }

  async handle(frame: ClientFrame, length: number): Promise<void> {
    try {
      await this.#follow(frame, length);
    } catch (error) {
      return this.#refuse(frame, error);
    }
    this.#accept(frame);
  }

  /** The socket is closed: the turn continues, unless `onDisconnect` says otherwise. */
  left(): void {
    this.#stopTimer();
    this.#leave();
    this.isOver = true;
    this.#reader.abort(new WaymarkError('CANCELLED', 'The reader has left.'));
    this.#reader.release();
    this.#serverContext.lifetime.closing.removeEventListener('abort', this.#endIdle);
  }

  async #follow(frame: ClientFrame, length: number): Promise<void> {
    if (frame.type === 'init') {
      if (this.#opened) {
        throw failedPrecondition('This connection has had its init frame.');
      }
      this.#opened = this.#open(frame);
      await this.#opened;
      return;
    }
    if (!this.#opened) {
      throw failedPrecondition('The first frame must be an init.');
    }
    // Frames may follow the first one before it is accepted.
    const line = await this.#opened;
    if (!this.#serverContext.options.authorize) return await this.#act(line, frame, length);
    // Judged one after the other, so that inputs keep their order; what they start is not waited for.
    const judged = this.#judged.then(async () => {
      const operation = operationOf(frame);
      if (operation) await this.#check(operation);
      return { done: this.#act(line, frame, length) };
    });
    this.#judged = judged.catch(() => {});
    await (await judged).done;
  }

  async #act(
    line: AgentConnection,
    frame: Exclude<ClientFrame, { type: 'init' }>,
    length: number,
  ): Promise<void> {
    switch (frame.type) {
      case 'input':
        return this.#send(line, frame.input, length);
      case 'detach':
        return this.#detach(line, frame.input);
      case 'steer':
        await line.steer(frame.input);
        return;
      case 'abort':
        return line.abort();
      case 'close':
        return line.close();
      default:
        return assertNever(frame);
    }
  }

  async #open(frame: Extract<ClientFrame, { type: 'init' }>): Promise<AgentConnection> {
    const caller = this.#caller ?? {};
    const agent = findAgent(this.#serverContext.app.agents(), this.#options.agent);
    const { sessionId, snapshotId } = frame.init ?? {};
    this.#subject = { sessionId, snapshotId };
    this.#agent = agent;
    await this.#check('connect');
    if (this.isOver) throw this.#reader.signal.reason;
    const line = internalsOf(agent).connect({
      ...invokeOptions(frame.init, caller),
      accept: agent.metadata.watchable,
    });
    this.#line = line;
    void this.#forward(agent, line);
    return line;
  }

  async #check(operation: 'connect' | 'runTurn' | 'steer' | 'abort'): Promise<void> {
    const { request } = this.#options;
    const caller = this.#caller ?? {};
    const agent = this.#agent;
    const call = { ...this.#subject, request, caller, operation, ...(agent && { agent }) };
    await checkCall(this.#serverContext, call);
  }

  async #send(line: AgentConnection, input: Input, length: number): Promise<void> {
    if (input.detach === true) return await this.#detach(line, input);
    this.#inputs.add(length, this.#caller?.principal);
    try {
      await line.send(input);
    } catch (error) {
      this.#turnEnded();
      throw error;
    }
  }

  async #detach(line: AgentConnection, input: Input | undefined): Promise<void> {
    await checkBackgroundRuns(this.#serverContext, this.#caller ?? {});
    const output = await line.detach(input);
    await this.#finish(undefined, output as Output);
  }

  // Sends what happens, turn after turn, and then the output.
  async #forward(agent: Agent, line: Connection): Promise<void> {
    const batches = cursorFeed(line.cursor, {
      agent,
      ...ownerOf(this.#caller ?? {}),
      reader: this.#reader.signal,
      watched: agent.metadata.watchable,
    });
    try {
      const elsewhere = await this.#sendAll(batches);
      if (this.isOver || this.#reader.signal.aborted) return;
      await this.#finish(undefined, elsewhere ?? (await line.output()));
    } catch (error) {
      await this.#finish(error);
    }
  }

  async #sendAll(
    batches: AsyncGenerator<FeedBatch, Output | undefined>,
  ): Promise<Output | undefined> {
    for (;;) {
      const { value, done } = await batches.next();
      if (done) return value;
      for (const event of value) {
        if (this.isOver) return undefined;
        if (event.type === 'chunk') {
          this.#see(event.chunk);
          await this.#socket.send({ ...event, chunk: this.#shown(event.chunk) });
        } else if (event.type !== 'output') await this.#socket.send(event);
      }
    }
  }

  #see(chunk: Chunk): void {
    const { agent, turnStart } = chunk;
    if (agent === undefined && turnStart) this.#subject = { sessionId: turnStart.sessionId };
    if (isTurnEnd(chunk)) this.#turnEnded();
  }

  #turnEnded(): void {
    this.#inputs.remove();
    if (this.#serverContext.lifetime.closing.aborted) this.#endIdle();
  }

  #accept({ ref }: ClientFrame): void {
    if (ref !== undefined && !this.isOver) void this.#socket.send({ type: 'accepted', ref });
  }

  // A frame with a ref is refused alone; without a connection there is nothing to continue.
  #refuse({ ref }: ClientFrame, error: unknown): void {
    if (ref === undefined || !this.#line) void this.#finish(error);
    else void this.#socket.send({ type: 'error', ref, error: this.#toAnswer(error) });
  }

  async #finish(error: unknown, output?: Output): Promise<void> {
    if (this.isOver) return;
    this.isOver = true;
    if (output) await this.#socket.send({ type: 'output', output: toPublicOutput(output) });
    else await this.#socket.send({ type: 'error', error: this.#toAnswer(error) });
    this.#socket.close(output ? closeCodes.done : closeCodes.refused, '');
  }

  #toAnswer(error: unknown): ErrorBody {
    logFault(this.#serverContext, error, { agent: this.#options.agent, operation: 'connect' });
    return toWireError(error);
  }

  // The reader has left, or the server ends.
  #end(): void {
    // A turn whose client has left still counts as the principal's until it is over.
    if (this.#line === undefined) this.#inputs.release();
    else void this.#line.done.then(() => this.#inputs.release());
    // A state that only the client holds is lost with the client.
    const lost = this.#agent?.metadata.stateManagement === 'client';
    const left = this.isOver;
    if (lost || (left && this.#serverContext.options.onDisconnect === 'abort')) this.#line?.abort();
    else this.#line?.close();
    if (lost && !left) {
      void this.#finish(this.#reader.signal.reason);
    } else {
      this.isOver = true;
      this.#socket.close(closeCodes.goingAway, 'The server is going away.');
    }
  }
}

// Each turn of a connection counts as a call.
function operationOf(frame: ClientFrame): 'runTurn' | 'steer' | 'abort' | undefined {
  if (frame.type === 'steer') return 'steer';
  if (frame.type === 'abort') return 'abort';
  return frame.type === 'input' || (frame.type === 'detach' && frame.input) ? 'runTurn' : undefined;
}

// Browsers cannot set headers on a WebSocket. Only what the request did not say itself can be added.
function withAuthorization(request: Request, authorization: Json | undefined): Request {
  if (typeof authorization !== 'string' || request.headers.has('authorization')) return request;
  if (!/^[\x20-\x7e]+$/.test(authorization)) {
    throw invalid('authorization must be printable ASCII.');
  }
  const headers = new Headers(request.headers);
  headers.set('authorization', authorization);
  return new Request(request.url, { headers });
}
