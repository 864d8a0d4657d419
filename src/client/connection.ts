import type {
  AgentConnection,
  AgentTypes,
  ChunkOf,
  OutputOf,
  ResumeInput,
} from '../agent/agent.ts';
import { createChannel } from '../core/channel.ts';
import { toWaymarkError, WaymarkError } from '../core/error.ts';
import type { ClientFrame, ServerFrame } from '../protocol/frames.ts';
import type { Message } from '../protocol/message.ts';
import type { Input, Output } from '../protocol/turn.ts';
import { followRun } from './follow-run.ts';
import { toInit } from './init.ts';
import { isPassing } from './reconnect.ts';
import type { RemoteInvokeOptions } from './remote-agent.ts';
import { fromErrorBody } from './remote-error.ts';
import { cannotConnect, openLine, type SocketLine } from './socket-line.ts';
import { abortRun } from './stop-turn.ts';
import type { Transport } from './transport.ts';
import { TurnPlace } from './turn-place.ts';
import { chunksOf, type ReadEvent } from './turn-stream.ts';

/** Many turns over a WebSocket. One that is cut is taken up: a running turn by its events, the next ones on a new socket. */
export function connect<Types extends AgentTypes>(
  transport: Transport,
  agent: string,
  options: RemoteInvokeOptions<Types> = {},
): AgentConnection<Types> {
  return new SocketConnection(transport, agent, options);
}

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: WaymarkError) => void;
}

class SocketConnection<Types extends AgentTypes> implements AgentConnection<Types> {
  readonly #transport: Transport;
  readonly #agent: string;
  readonly #chunks: AsyncIterable<ChunkOf<Types>>;
  readonly #events = createChannel<ReadEvent>({ capacity: Number.POSITIVE_INFINITY });
  readonly #output = Promise.withResolvers<Output>();
  readonly #place: TurnPlace;
  // Frames that the server has not answered yet, by their ref.
  readonly #unanswered = new Map<number, Waiter>();
  // Ends what follows a turn over HTTP after a cut.
  readonly #over = new AbortController();
  #line: SocketLine | undefined;
  #wasOpen = false;
  readonly #unsent: ClientFrame[] = [];
  #lastRef = 0;
  #state: 'open' | 'closing' | 'aborting' | 'ended' = 'open';
  readonly done: Promise<void>;

  constructor(transport: Transport, agent: string, options: RemoteInvokeOptions<Types>) {
    this.#transport = transport;
    this.#agent = agent;
    this.#place = new TurnPlace(toInit(options).init ?? {});
    this.#chunks = chunksOf(this.#events, options.onReset);
    const { signal } = options;
    const stop = (): void => this.abort(signal?.reason);
    const forget = (): void => signal?.removeEventListener('abort', stop);
    this.done = this.#output.promise.then(forget, forget);
    signal?.addEventListener('abort', stop);
    this.#open();
    if (signal?.aborted) stop();
  }

  send(input: Input): Promise<void> {
    return handled(this.#send(input));
  }

  sendText(text: string): Promise<void> {
    return this.sendMessage({ role: 'user', content: [{ text }] });
  }

  sendMessage(message: Message): Promise<void> {
    return this.send({ message });
  }

  sendResume({ respond, restart }: ResumeInput): Promise<void> {
    return this.send({
      resume: {
        ...(respond && { respond: [...respond] }),
        ...(restart && { restart: [...restart] }),
      },
    });
  }

  receive(): AsyncIterable<ChunkOf<Types>> {
    return this.#chunks;
  }

  async *turn(): AsyncGenerator<ChunkOf<Types>, void, undefined> {
    for await (const chunk of this.#chunks) {
      yield chunk;
      if (chunk.turnEnd && chunk.agent === undefined) return;
    }
  }

  detach(input?: Input): Promise<OutputOf<Types>> {
    return handled(this.#detach(input));
  }

  abort(_reason?: unknown): void {
    if (this.#state === 'ended' || this.#state === 'aborting') return;
    this.#state = 'aborting';
    if (this.#line) this.#say({ type: 'abort' });
    else this.#stopRunning();
  }

  close(): void {
    if (this.#state !== 'open') return;
    this.#state = 'closing';
    this.#say({ type: 'close' });
  }

  output(): Promise<OutputOf<Types>> {
    this.close();
    return this.#typedOutput();
  }

  async #send(input: Input): Promise<void> {
    this.#mustBeOpen();
    const accepted = this.#ask((ref) => ({ type: 'input', ref, input }));
    this.#place.queued(1);
    await accepted.catch((error: unknown) => {
      this.#place.queued(-1);
      throw error;
    });
  }

  async #detach(input: Input | undefined): Promise<OutputOf<Types>> {
    this.#mustBeOpen();
    await this.#ask((ref) => ({ type: 'detach', ref, ...(input && { input }) }));
    if (this.#state === 'open') this.#state = 'closing';
    return await this.#typedOutput();
  }

  #typedOutput(): Promise<OutputOf<Types>> {
    // The server speaks for the types its agent declared.
    return this.#output.promise as Promise<OutputOf<Types>>;
  }

  #mustBeOpen(): void {
    if (this.#state === 'open') return;
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      'The connection is closed: open another with streamBidi to send more.',
    );
  }

  #ask(frame: (ref: number) => ClientFrame): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const ref = ++this.#lastRef;
    this.#unanswered.set(ref, { resolve, reject });
    this.#say(frame(ref));
    return promise;
  }

  // After a cut between two turns there is no line until somebody has something to say.
  #say(frame: ClientFrame): void {
    if (this.#line?.ready) this.#line.send(frame);
    else this.#unsent.push(frame);
    if (!this.#line) this.#open();
  }

  #open(tries = 1): void {
    const line = openLine(this.#transport, this.#agent, this.#place.init, {
      onReady: () => {
        this.#wasOpen = true;
        for (const frame of this.#unsent.splice(0)) line.send(frame);
      },
      onFrame: (frame) => this.#read(frame),
      onClose: (cause) => {
        if (line.ready) this.#cut();
        else this.#openAgain(tries, cannotConnect(cause));
      },
    });
    this.#line = line;
  }

  // Of what has not been sent nothing is lost. A first line that cannot be opened is a mistake, and told at once.
  #openAgain(tries: number, error: WaymarkError): void {
    const delay = this.#wasOpen ? this.#transport.reconnect.delayOf(tries) : undefined;
    if (delay === undefined || !isPassing(error.status)) this.#end(error);
    else {
      this.#transport.clock.sleep(delay, this.#over.signal).then(
        () => this.#open(tries + 1),
        () => {}, // ended meanwhile
      );
    }
  }

  #read(frame: ServerFrame): void {
    switch (frame.type) {
      case 'chunk':
        this.#place.note(frame.chunk, frame.id);
        this.#events.trySend(frame);
        return;
      case 'reset':
        this.#place.after = frame.id;
        this.#events.trySend(frame);
        return;
      case 'accepted':
        this.#answer(frame.ref)?.resolve();
        return;
      case 'error': {
        const error = fromErrorBody(frame.error) ?? toWaymarkError(frame.error);
        if (frame.ref === undefined) this.#end(error);
        else this.#answer(frame.ref)?.reject(error);
        return;
      }
      case 'output':
        this.#end(frame.output);
        return;
      default:
        // A kind of frame that a later server may send says nothing here.
        frame satisfies never;
    }
  }

  #answer(ref: string | number): Waiter | undefined {
    const waiter = this.#unanswered.get(Number(ref));
    this.#unanswered.delete(Number(ref));
    return waiter;
  }

  #cut(): void {
    this.#line = undefined;
    const lost = this.#unanswered.size > 0;
    const { running } = this.#place;
    if (running) this.#takeUp(running).catch((error: unknown) => this.#end(toWaymarkError(error)));
    else if (lost || !this.#place.canGoOn || this.#state === 'aborting') this.#end(cutOff());
    else if (this.#state === 'closing') this.#say({ type: 'close' });
  }

  // The turn goes on at the server; the rest of it comes over HTTP.
  async #takeUp({ snapshotId, after }: { snapshotId: string; after: string }): Promise<void> {
    if (this.#state === 'aborting') this.#stopRunning();
    const line = { agent: this.#agent, snapshotId, after };
    for await (const event of followRun(this.#transport, line, this.#over.signal)) {
      if (event.type === 'error') throw event.error;
      if (event.type === 'output') {
        this.#place.ended(event.output);
        // What was sent after this turn began went down with the socket, and nobody knows how far it came.
        if (this.#place.waiting > 0 || this.#unanswered.size > 0) throw cutOff();
        if (this.#state !== 'open') this.#end(event.output);
        return;
      }
      if (event.type === 'chunk') this.#place.note(event.chunk, event.id);
      this.#events.trySend(event);
    }
  }

  #stopRunning(): void {
    const { running } = this.#place;
    const fail = (error: unknown): void => this.#end(toWaymarkError(error));
    if (running) {
      const params = { agent: this.#agent, snapshot: running.snapshotId };
      abortRun(this.#transport, params).catch(fail);
    } else fail(cutOff());
  }

  #end(result: Output | WaymarkError): void {
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    this.#over.abort();
    this.#line?.hangUp();
    this.#line = undefined;
    const failed = result instanceof WaymarkError;
    const detached = !failed && result.finishReason === 'detached';
    for (const { resolve, reject } of this.#unanswered.values()) {
      // Everything that was sent before goes to the background with the rest.
      if (detached) resolve();
      else reject(failed ? result : notRun());
    }
    this.#unanswered.clear();
    if (failed) {
      this.#events.fail(result);
      this.#output.reject(result);
    } else {
      this.#events.close();
      this.#output.resolve(this.#place.complete(result));
    }
  }
}

/** The same promise; nobody has to look at how it ends, as an unhandled rejection would end a process. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

function cutOff(): WaymarkError {
  return new WaymarkError(
    'UNAVAILABLE',
    'The connection was cut, and what was sent last may or may not have been taken. Look at the session first.',
  );
}

function notRun(): WaymarkError {
  return new WaymarkError(
    'FAILED_PRECONDITION',
    'The connection ended before this input was taken.',
  );
}
