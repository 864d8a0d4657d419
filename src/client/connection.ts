import type { ApiInvokeOptions } from '../api/agent-api.ts';
import { ConnectionCalls } from '../api/calls.ts';
import { describeOutput, type TurnInput, toInput } from '../api/turn-values.ts';
import type {
  AgentConnection,
  AgentTypes,
  ChunkOf,
  OutputOf,
  RequestOptions,
} from '../api/types.ts';
import { Channel } from '../core/async/channel.ts';
import { forCaller } from '../core/async/promises.ts';
import { failedPrecondition, toWaymarkError, WaymarkError } from '../core/error.ts';
import type { ClientFrame, ServerFrame } from '../protocol/frames.ts';
import type { SteerResult } from '../protocol/requests.ts';
import type { Chunk, Input, Output } from '../protocol/turn.ts';
import { toToolSchema } from './caller-tool-schema.ts';
import { cutOff, PendingFrames, ResumeCursor } from './connection-state.ts';
import { artifactQuery, followRun, ownTurnStart } from './follow-run.ts';
import { fromErrorBody } from './remote-error.ts';
import { identified, knowsRequests } from './request-id.ts';
import { abortRun, steerRun } from './running-turn.ts';
import { type ClientSocket, cannotConnect, openSocket, whyNot } from './socket.ts';
import { isPassing, type Transport } from './transport.ts';
import { chunksOf, type ReadEvent, toInit } from './turn-stream.ts';

type InputFrame = Extract<ClientFrame, { type: 'input' }>;
type DetachFrame = Extract<ClientFrame, { type: 'detach' }>;

/** Many turns over a WebSocket. After a cut, a running turn continues over HTTP, the next ones on a new socket. */
export class SocketConnection<Types extends AgentTypes>
  extends ConnectionCalls<Types>
  implements AgentConnection<Types>
{
  protected readonly toJsonSchema = toToolSchema;
  readonly #transport: Transport;
  readonly #agent: string;
  readonly #artifacts: ApiInvokeOptions['artifacts'];
  readonly #chunks: AsyncIterable<ChunkOf<Types>>;
  readonly #events = new Channel<ReadEvent>();
  readonly #output = Promise.withResolvers<Output>();
  readonly #place: ResumeCursor;
  readonly #answers = new PendingFrames();
  // Stops following a turn over HTTP.
  readonly #over = new AbortController();
  #line: ClientSocket | undefined;
  #wasOpen = false;
  // After a cut, while the rest of a turn arrives over HTTP.
  #takingUp = false;
  readonly #unsent: ClientFrame[] = [];
  // Sent, but not started as far as is known: sent again after a cut, under the same request ids.
  #unstarted: InputFrame[] = [];
  #detaching: DetachFrame | undefined;
  #startedId: string | undefined;
  /** The id of the running turn's run, once the turn has started; `undefined` if it ends without one. */
  #started = Promise.withResolvers<string | undefined>();
  #state: 'open' | 'closing' | 'aborting' | 'ended' = 'open';
  readonly done: Promise<void>;

  constructor(transport: Transport, agent: string, options: ApiInvokeOptions<Types> = {}) {
    super();
    this.#transport = transport;
    this.#agent = agent;
    this.#place = new ResumeCursor(toInit(options));
    this.#artifacts = options.artifacts;
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
    return forCaller(this.#send(input));
  }

  async steer(given: TurnInput, options?: RequestOptions): Promise<SteerResult> {
    const snapshot = await this.#started.promise;
    const run = { agent: this.#agent, snapshot };
    return await steerRun(this.#transport, run, toInput(given), options);
  }

  receive(): AsyncIterable<ChunkOf<Types>> {
    return this.#chunks;
  }

  detach(input?: Input): Promise<OutputOf<Types>> {
    return forCaller(this.#detach(input));
  }

  abort(_reason?: unknown): void {
    if (this.#state === 'ended' || this.#state === 'aborting') return;
    this.#state = 'aborting';
    if (this.#takingUp) this.#stopRunning();
    else this.#say({ type: 'abort' });
  }

  close(): void {
    if (this.#state !== 'open') return;
    this.#state = 'closing';
    // The output of a turn that is being taken up is the last one, if nothing is to follow it.
    if (!this.#takingUp || this.#unsent.length > 0) this.#say({ type: 'close' });
  }

  output(): Promise<OutputOf<Types>> {
    this.close();
    return forCaller(this.#typedOutput());
  }

  async #send(given: Input): Promise<void> {
    this.#mustBeOpen();
    const input = identified(given);
    const { ref, answered } = this.#answers.expect();
    const frame = { type: 'input', ref, input } as const;
    this.#unstarted.push(frame);
    this.#say(frame);
    this.#place.queued(1);
    await answered.catch((error: unknown) => {
      this.#unstarted = this.#unstarted.filter((each) => each !== frame);
      this.#place.queued(-1);
      throw error;
    });
  }

  async #detach(given: Input | undefined): Promise<OutputOf<Types>> {
    this.#mustBeOpen();
    const input = given && identified(given);
    const { ref, answered } = this.#answers.expect();
    this.#detaching = { type: 'detach', ref, ...(input && { input }) };
    this.#say(this.#detaching);
    await answered.finally(() => {
      this.#detaching = undefined;
    });
    if (this.#state === 'open') this.#state = 'closing';
    return await this.#typedOutput();
  }

  #typedOutput(): Promise<OutputOf<Types>> {
    // The server speaks for the types its agent declared.
    return this.#output.promise as Promise<OutputOf<Types>>;
  }

  #mustBeOpen(): void {
    if (this.#state === 'open') return;
    throw failedPrecondition(
      'The connection is closed: open another with streamBidi to send more.',
    );
  }

  // After a cut between two turns there is no socket until the caller sends something.
  #say(frame: ClientFrame): void {
    if (this.#line?.ready) this.#line.send(frame);
    else this.#unsent.push(frame);
    if (!this.#line && !this.#takingUp) this.#open();
  }

  #open(tries = 1): void {
    const to = { agent: this.#agent, ...artifactQuery(this.#artifacts) };
    const line = openSocket(this.#transport, to, this.#place.init, {
      onReady: () => {
        this.#wasOpen = true;
        for (const frame of this.#unsent.splice(0)) line.send(frame);
      },
      onFrame: (frame) => this.#read(frame),
      onClose: (cause) => {
        if (line.ready) this.#cut();
        else if (this.#wasOpen) this.#openAgain(tries, cannotConnect(cause));
        // A first socket that cannot be opened is a mistake: report it at once.
        else void whyNot(this.#transport, this.#agent, cause).then((error) => this.#end(error));
      },
    });
    this.#line = line;
  }

  #openAgain(tries: number, error: WaymarkError): void {
    const delay = this.#transport.reconnect.delayOf(tries);
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
        this.#note(frame.chunk, frame.id);
        this.#events.push(frame);
        return;
      case 'reset':
        this.#place.after = frame.id;
        this.#events.push(frame);
        return;
      case 'alive':
        return;
      case 'accepted':
        this.#answers.answer(frame.ref);
        return;
      case 'error': {
        const error = fromErrorBody(frame.error) ?? toWaymarkError(frame.error);
        if (frame.ref === undefined) this.#end(error);
        else this.#answers.answer(frame.ref, error);
        return;
      }
      case 'output':
        this.#end(frame.output);
        return;
      default:
        // Ignore the kinds of frames that a later server may send.
        frame satisfies never;
    }
  }

  #cut(): void {
    this.#line = undefined;
    const { running, canGoOn } = this.#place;
    if (running) {
      this.#takeUp(running).catch((error: unknown) => this.#end(toWaymarkError(error)));
    } else if (this.#isUnanswered()) void this.#sendAgain();
    else if (!canGoOn) this.#end(cutOff());
    else if (this.#state === 'closing') this.#say({ type: 'close' });
    else if (this.#state === 'aborting') this.#say({ type: 'abort' });
  }

  /** Whether something was sent that the server may or may not have received. */
  #isUnanswered(): boolean {
    return this.#unstarted.length > 0 || this.#detaching !== undefined;
  }

  // By its request id, the server joins what it has already received.
  async #sendAgain(): Promise<void> {
    const detaching = this.#detaching;
    this.#takingUp = true;
    const canDetach = detaching === undefined || detaching.input !== undefined;
    const isKnown =
      canDetach && (await knowsRequests(this.#transport, this.#agent, this.#over.signal));
    this.#takingUp = false;
    if (this.#state === 'ended') return;
    if (!isKnown) {
      this.#end(cutOff());
      return;
    }
    const last = { closing: 'close', aborting: 'abort', open: undefined } as const;
    const then = detaching === undefined ? last[this.#state] : undefined;
    this.#unsent.unshift(
      ...this.#unstarted.filter((frame) => !this.#unsent.includes(frame)),
      ...(detaching === undefined || this.#unsent.includes(detaching) ? [] : [detaching]),
    );
    if (then !== undefined) this.#unsent.push({ type: then });
    this.#open();
  }

  // The turn continues on the server; the rest of it arrives over HTTP.
  async #takeUp(run: { snapshotId: string; after: string }): Promise<void> {
    this.#takingUp = true;
    if (this.#state === 'aborting') this.#stopRunning();
    const line = { agent: this.#agent, artifacts: this.#artifacts, ...run };
    for await (const event of followRun(this.#transport, line, this.#over.signal)) {
      if (event.type === 'error') throw event.error;
      if (event.type === 'output') {
        this.#takenUp(event.output);
        return;
      }
      if (event.type === 'chunk') this.#note(event.chunk, event.id);
      this.#events.push(event);
    }
  }

  #note(chunk: Chunk, id: string | undefined): void {
    this.#place.note(chunk, id);
    const start = ownTurnStart(chunk);
    if (chunk.turnEnd && chunk.agent === undefined) this.#started = Promise.withResolvers();
    // A turn that another process has taken over starts once more.
    if (start === undefined || (start.snapshotId && start.snapshotId === this.#startedId)) return;
    this.#startedId = start.snapshotId;
    this.#started.resolve(start.snapshotId);
    const begun = this.#unstarted.shift();
    if (begun?.ref !== undefined) this.#answers.answer(begun.ref);
  }

  #takenUp(output: Output): void {
    this.#takingUp = false;
    this.#place.ended(output);
    // After a failed turn the server drops what waited behind it.
    if (output.error) this.#end(output);
    else if (this.#isUnanswered()) void this.#sendAgain();
    else if (this.#unsent.length > 0) this.#open();
    else if (this.#state !== 'open') this.#end(output);
  }

  #stopRunning(): void {
    const snapshot = this.#place.running?.snapshotId;
    // Between its last event and its output there is nothing left to stop.
    if (snapshot === undefined) return;
    abortRun(this.#transport, { agent: this.#agent, snapshot }).catch((error: unknown) =>
      this.#end(toWaymarkError(error)),
    );
  }

  #end(result: Output | WaymarkError): void {
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    this.#started.resolve(undefined);
    this.#over.abort();
    this.#line?.hangUp();
    this.#line = undefined;
    if (result instanceof WaymarkError) {
      this.#answers.end(result);
      this.#events.fail(result);
      this.#output.reject(result);
    } else {
      // Everything that was sent before a detach goes to the background with the rest.
      const isLeft = result.finishReason !== 'detached';
      const notRun = 'The connection ended before this input was taken.';
      this.#answers.end(isLeft ? failedPrecondition(notRun) : undefined);
      this.#events.close();
      this.#output.resolve(describeOutput(this.#place.complete(result)));
    }
  }
}
