import { createChannel } from '../core/channel.ts';
import { parseShape } from '../protocol/parse.ts';
import { type Chunk, type Input, input as inputShape, type Output } from '../protocol/turn.ts';
import type { AgentConnection, AgentStream } from './agent.ts';
import { checkOpen } from './beginning.ts';
import { Invocation, type InvocationRequest } from './invocation.ts';
import type { AgentHost, AgentSpec } from './spec.ts';

/** Chunks that wait for a slow reader before the turn does. */
const mostUnread = 64;

/** Opens a connection: the turns run as inputs come, the caller reads as it likes. */
export function connect(
  spec: AgentSpec,
  host: AgentHost,
  createRequest: () => InvocationRequest,
): AgentConnection {
  const chunks = createChannel<Chunk>({ capacity: mostUnread });
  const settled = Promise.withResolvers<Output>();
  // Nobody has to look at a result; an unhandled rejection would end the process.
  settled.promise.catch(() => {});
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
  async function* stream(): AsyncGenerator<Chunk, void> {
    await sent;
    try {
      yield* connection.receive();
    } finally {
      output().catch(() => {});
    }
  }
  let asked: Promise<Output> | undefined;
  return {
    stream: stream(),
    get output() {
      asked ??= output();
      return asked;
    },
  };
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
