import { createChannel, type Waiting, waiting, waitingIn } from '../core/channel.ts';
import { WaymarkError } from '../core/error.ts';
import { parseShape } from '../protocol/parse.ts';
import { type Chunk, type Input, input as inputShape, type Output } from '../protocol/turn.ts';
import type { AgentConnection, AgentStream } from './agent.ts';
import { checkOpen } from './beginning.ts';
import { Invocation, type InvocationRequest } from './invocation.ts';
import { createPatience } from './patience.ts';
import type { AgentHost, AgentSpec } from './spec.ts';

/** Chunks that wait for a slow reader before the turn does. */
const mostUnread = 192;

/** Opens a connection: the turns run as inputs come, the caller reads as it likes. */
export function connect(
  spec: AgentSpec,
  host: AgentHost,
  createRequest: () => InvocationRequest,
): AgentConnection {
  const patience = createPatience(host.clock, () => chunks.fail(readerGone()));
  const chunks = createChannel<Chunk>({ capacity: mostUnread, onWait: patience.watch });
  const settled = Promise.withResolvers<Output>();
  // Nobody has to look at a result; an unhandled rejection would end the process.
  settled.promise.then(patience.end, patience.end);
  // What becomes of a detached run later is not this connection's any more.
  let isSettled = false;
  const finish = (output: Output): void => {
    isSettled = true;
    settled.resolve(output);
    chunks.close();
  };
  const fail = (error: unknown): void => {
    if (isSettled) return;
    settled.reject(error);
    chunks.fail(error);
  };
  let invocation: Invocation | undefined;
  try {
    const request = createRequest();
    checkOpen(host, request);
    invocation = new Invocation(spec, host, { ...request, caller: chunks });
    host.background(invocation.execute().then(finish, fail));
  } catch (error) {
    // A bad init is told like one that is found out later.
    fail(error);
  }

  const detach = async (input?: Input): Promise<Output> => {
    if (invocation === undefined) return await settled.promise;
    const output = await invocation.detach(input);
    finish(output);
    return output;
  };
  const send = async (value: Input): Promise<void> => {
    const input = parseInput(spec, value);
    if (invocation === undefined) await settled.promise;
    else if (input.detach === true) await detach(input);
    else invocation.inbox.push(input);
  };
  return {
    send,
    sendText: (text) => send(textInput(text)),
    sendMessage: (message) => send({ message }),
    sendResume: ({ respond, restart }) =>
      send({
        resume: {
          ...(respond && { respond: [...respond] }),
          ...(restart && { restart: [...restart] }),
        },
      }),
    receive: () => chunks,
    turn: () => untilTurnEnd(chunks),
    detach: async (input) => await detach(input && parseInput(spec, input)),
    abort: (reason) => invocation?.stop(reason),
    close: () => invocation?.inbox.close(),
    output() {
      invocation?.inbox.close();
      chunks.unbound();
      return settled.promise;
    },
    done: settled.promise.then(
      () => {},
      () => {},
    ),
  };
}

/**
 * One input on a connection of its own, its chunks as they come. The turn waits for a slow reader; once the reader leaves,
 * or somebody asks for the output, it no longer does.
 */
export function streamOne(
  connection: AgentConnection,
  input: Input,
  signal?: AbortSignal,
): AgentStream {
  const sent = connection.send(input).then(
    () => connection.close(),
    (error: unknown) => {
      // What was stopped before it began ends like what was stopped after: with an output that says so.
      if (signal?.aborted) return;
      connection.abort();
      throw error;
    },
  );
  const output = async (): Promise<Output> => {
    await sent;
    return await connection.output();
  };
  sent.catch(() => {});
  let asked: Promise<Output> | undefined;
  return {
    stream: chunksOf(connection, sent, () => void output().catch(() => {})),
    get output() {
      asked ??= output();
      return asked;
    },
  };
}

/** The chunks of a connection, once its input has been taken; `leave` is called when they have ended or are left. */
function chunksOf(
  connection: AgentConnection,
  sent: Promise<void>,
  leave: () => void,
): AsyncIterable<Chunk> & Waiting<Chunk> {
  const chunks = connection.receive();
  const source = chunks[Symbol.asyncIterator]();
  const done = { value: undefined, done: true } as const;
  let hasLeft = false;
  const end = (): typeof done => {
    hasLeft = true;
    leave();
    return done;
  };
  return {
    [waiting]: () => (hasLeft ? [] : waitingIn(chunks)),
    [Symbol.asyncIterator]: () => ({
      async next() {
        if (hasLeft) return done;
        try {
          await sent;
          const result = await source.next();
          return result.done ? end() : result;
        } catch (error) {
          end();
          throw error;
        }
      },
      return: async () => end(),
    }),
  };
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

function parseInput(spec: AgentSpec, value: Input): Input {
  const input = parseShape(inputShape, value, 'input');
  spec.checkInput(input);
  return input;
}

async function* untilTurnEnd(chunks: AsyncIterable<Chunk>): AsyncGenerator<Chunk, void> {
  for await (const chunk of chunks) {
    yield chunk;
    if (chunk.turnEnd !== undefined) return;
  }
}
