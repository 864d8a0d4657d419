import { type Channel, createChannel } from '../../core/async/channel.ts';
import { WaymarkError } from '../../core/error.ts';
import type { Message } from '../../protocol/message.ts';
import { parseShape } from '../../protocol/parse.ts';
import { type Chunk, type Input, input as inputShape, type Output } from '../../protocol/turn.ts';
import type { AgentHost } from '../persistence/host.ts';
import type { AgentConnection, RequestOptions, ResumeInput } from '../spec/agent.ts';
import type { AgentSpec } from '../spec/spec.ts';
import { checkOpen } from '../turn/accept-turn.ts';
import { Invocation } from '../turn/invocation.ts';
import type { InvocationRequest } from '../turn/invocation-state.ts';
import { withoutOptions } from '../turn/remote-input.ts';
import { checkRequestId, underRequest, withoutAutoId } from '../turn/requests.ts';
import { createReaderTimeout, type ReaderTimeout } from './reader-timeout.ts';

/** Chunks that wait for a slow reader before the turn does. */
const maxUnread = 192;

/** A connection to an agent of this process: the turns run as inputs come, the caller reads as it likes. */
export class Connection implements AgentConnection {
  /** What waits for the caller. */
  readonly chunks: Channel<Chunk>;
  readonly #spec: AgentSpec;
  readonly #host: AgentHost;
  readonly #invocation: Invocation | undefined;
  readonly #settled = Promise.withResolvers<Output>();
  #isSettled = false;
  #readerTimeout: ReaderTimeout | undefined;

  constructor(spec: AgentSpec, host: AgentHost, createRequest: () => InvocationRequest) {
    this.#spec = spec;
    this.#host = host;
    this.chunks = createChannel({ capacity: maxUnread, onWait: (sent) => this.#watch(sent) });
    // Nobody has to look at a result; an unhandled rejection would end the process.
    this.#settled.promise.catch(() => {});
    try {
      const request = createRequest();
      checkOpen(host, request);
      this.#invocation = new Invocation(spec, host, { ...request, caller: this.chunks });
      host.background(
        this.#invocation.execute().then(
          (output) => this.#finish(output),
          (error: unknown) => this.#fail(error),
        ),
      );
    } catch (error) {
      // A bad init is told like one that is found out later.
      this.#fail(error);
    }
  }

  get done(): Promise<void> {
    return this.#settled.promise.then(
      () => {},
      () => {},
    );
  }

  async send(value: Input): Promise<void> {
    const input = this.#parse(value);
    if (this.#invocation === undefined) await this.#settled.promise;
    else if (input.detach === true) await this.#detach(input);
    else if (input.resume === undefined) this.#invocation.state.inbox.push(input);
    // Whether an answer fits its interrupt is known when its turn begins.
    else await this.#invocation.state.inbox.offer(input);
  }

  sendText(text: string, options?: RequestOptions): Promise<void> {
    return this.send(underRequest(textInput(text), options));
  }

  sendMessage(message: Message, options?: RequestOptions): Promise<void> {
    return this.send(underRequest({ message }, options));
  }

  sendResume({ respond, restart }: ResumeInput, options?: RequestOptions): Promise<void> {
    const resume = {
      ...(respond && { respond: [...respond] }),
      ...(restart && { restart: [...restart] }),
    };
    return this.send(underRequest({ resume }, options));
  }

  receive(): AsyncIterable<Chunk> {
    return this.chunks;
  }

  turn(): AsyncIterable<Chunk> {
    return untilTurnEnd(this.chunks);
  }

  async detach(input?: Input): Promise<Output> {
    return await this.#detach(input && this.#parse(input));
  }

  abort(reason?: unknown): void {
    this.#invocation?.state.stop(reason);
  }

  close(): void {
    this.#invocation?.state.inbox.close();
  }

  output(): Promise<Output> {
    this.close();
    this.chunks.unbound();
    return this.#settled.promise;
  }

  #parse(value: Input): Input {
    const input = withoutAutoId(this.#spec, parseShape(inputShape, value, 'input'));
    checkRequestId(this.#spec, input);
    this.#spec.checkInput(input);
    const { message } = input;
    if (message === undefined || this.#invocation?.state.request.remote !== true) return input;
    return { ...input, message: withoutOptions(message) };
  }

  async #detach(input?: Input): Promise<Output> {
    if (this.#invocation === undefined) return await this.#settled.promise;
    const output = await this.#invocation.detach(input);
    this.#finish(output);
    return output;
  }

  #finish(output: Output): void {
    this.#end();
    this.#settled.resolve(output);
    this.chunks.close();
  }

  #fail(error: unknown): void {
    // What becomes of a detached run later is not this connection's any more.
    if (this.#isSettled) return;
    this.#end();
    this.#settled.reject(error);
    this.chunks.fail(error);
  }

  #end(): void {
    this.#isSettled = true;
    this.#readerTimeout?.end();
  }

  #watch(sent: Promise<void>): void {
    this.#readerTimeout ??= createReaderTimeout(this.#host.clock, () =>
      this.chunks.fail(readerGone()),
    );
    this.#readerTimeout.watch(sent);
  }
}

// What waited can still be read; then whoever comes back learns what became of the rest.
function readerGone(): WaymarkError {
  return new WaymarkError(
    'OUT_OF_RANGE',
    'The chunks were not read for five minutes, and the turn went on without its reader. Its output has the answer.',
  );
}

/** A user's text as an input. */
export function textInput(text: string): Input {
  return { message: { role: 'user', content: [{ text }] } };
}

async function* untilTurnEnd(chunks: AsyncIterable<Chunk>): AsyncGenerator<Chunk, void> {
  for await (const chunk of chunks) {
    yield chunk;
    if (chunk.turnEnd !== undefined) return;
  }
}
