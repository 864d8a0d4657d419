import { type AgentOperations, type BegunTurn, createCalls } from '../api/calls.ts';
import type { AgentTypes, WireTypes } from '../api/types.ts';
import type { OptionNames } from '../core/options.ts';
import { checkLookup } from '../protocol/ids.ts';
import { checkMessagePage } from '../protocol/message-page.ts';
import type { Input, Output } from '../protocol/turn.ts';
import { toToolSchema } from './caller-tool-schema.ts';
import { connect } from './connection.ts';
import type { ClientOptions } from './options.ts';
import type {
  RemoteAgent,
  RemoteCallOptions,
  RemoteInvokeOptions,
  RemoteRunOptions,
} from './remote-agent.ts';
import { identified } from './request-id.ts';
import { abortRun, steerRun } from './running-turn.ts';
import type { RemoteRequest, Transport } from './transport.ts';
import { streamTurn } from './turn-stream.ts';
import { waitForRun, watchRun } from './watch.ts';

const optionNames: OptionNames<RemoteRunOptions> = {
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

/** The agent of that name on the server at the other end. */
export function createRemoteAgent<Types extends AgentTypes>(
  transport: Transport,
  name: string,
  turnsOver: NonNullable<ClientOptions['transport']>,
): RemoteAgent<Types> {
  const stream = turnsOver === 'http' ? streamTurn : streamOverSocket;
  const at = (
    operation: RemoteRequest['operation'],
    params: Readonly<Record<string, string>> = {},
    options: { readonly signal?: AbortSignal } = {},
  ): RemoteRequest => ({
    operation,
    params: { agent: name, ...params },
    signal: options.signal,
  });

  // Where nothing is found the agent itself may be unknown, which is a mistake and no answer.
  let known = false;
  const found = async <T>(answer: Promise<T | undefined>): Promise<T | undefined> => {
    const value = await answer;
    known ||= value !== undefined;
    if (!known) await describe();
    known = true;
    return value;
  };

  const describe: RemoteAgent['describe'] = (options) =>
    transport.json(at('getAgent', {}, options));

  const operations: AgentOperations<RemoteCallOptions, RemoteInvokeOptions> = {
    // A stream for single turns as well: only a stream tells the id by which a turn is stopped or found again.
    optionNames,
    toJsonSchema: toToolSchema,
    begin: (input, options, follow) => followed(stream(transport, name, input, options), follow),
    streamBidi: (options) => connect(transport, name, options),

    getSnapshot: async (given, { messages, ...options } = {}) => {
      const lookup = checkLookup(given);
      checkMessagePage(messages);
      if (!('snapshotId' in lookup)) {
        const head = at('getHead', { session: lookup.sessionId }, options);
        return found(transport.find({ ...head, query: { ...messages } }));
      }
      const { snapshotId, sessionId } = lookup;
      const request = at('getSnapshot', { snapshot: snapshotId }, options);
      return found(transport.find({ ...request, query: { sessionId, ...messages } }));
    },
    async listSnapshots(session, { limit, cursor, includeOrphaned, newestFirst, ...options } = {}) {
      const request = at('listSnapshots', { session }, options);
      const query = { limit, cursor, includeOrphaned, newestFirst };
      return (await found(transport.find({ ...request, query }))) ?? { items: [] };
    },
    getSession: async (session, { messages, ...options } = {}) => {
      checkMessagePage(messages);
      const request = at('getSession', { session }, options);
      return found(transport.find({ ...request, query: { ...messages } }));
    },
    listSessions: ({ limit, cursor, query, failed, waiting, labelled, ...options } = {}) =>
      transport.json({
        ...at('listSessions', {}, options),
        query: { limit, cursor, query, failed, waiting, labelled },
      }),
    listInterrupts: ({ limit, cursor, ...options } = {}) =>
      transport.json({ ...at('listInterrupts', {}, options), query: { limit, cursor } }),
    updateSession: (session, change, options) =>
      transport.json({ ...at('updateSession', { session }, options), body: change }),
    deleteSession: async (session, options) =>
      (await found(transport.find(at('deleteSession', { session }, options)))) !== undefined,

    wait: (snapshotId, options) =>
      waitForRun<WireTypes>(transport, { agent: name, snapshotId }, options),
    watch: (snapshotId, options) => watchRun(transport, { agent: name, snapshotId }, options),
    steer: (snapshot, input, options) =>
      steerRun(transport, { agent: name, snapshot }, input, options),
    abort: async (snapshot, { signal } = {}) =>
      (await found(abortRun(transport, { agent: name, snapshot }, signal)))?.status,
    listRuns: ({ limit, cursor, ...options } = {}) =>
      transport.json({ ...at('listRuns', {}, options), query: { limit, cursor } }),
    listDeadRuns: ({ limit, cursor, ...options } = {}) =>
      transport.json({ ...at('listDeadRuns', {}, options), query: { limit, cursor } }),
    getUsage: ({ sessionId, by, since, ...options } = {}) =>
      transport.json({ ...at('getUsage', {}, options), query: { session: sessionId, by, since } }),
    retryRun: (snapshot, options) => transport.json(at('retryRun', { snapshot }, options)),

    restore: (snapshot, { ifHead, partial, ...options } = {}) =>
      transport.json({ ...at('restore', { snapshot }, options), body: { ifHead, partial } }),
    fork: (snapshot, { sessionId, ifHead, ...options } = {}) =>
      transport.json({ ...at('fork', { snapshot }, options), body: { sessionId, ifHead } }),
    edit: (snapshot, change, { ifHead, reason, by: _, ...options } = {}) =>
      transport.json({
        ...at('edit', { snapshot }, options),
        body: { change, reason, ifHead },
      }),
    diff: (snapshot, other, options) => transport.json(at('diff', { snapshot, other }, options)),
    label: (snapshot, label, { ifHead, ...options } = {}) =>
      transport.json({ ...at('label', { snapshot }, options), body: { label, ifHead } }),
  };
  // The types are read off the agent's definition; on the wire, everything is JSON.
  return { name, describe, ...createCalls(operations) } as RemoteAgent as RemoteAgent<Types>;
}

/** Passes the output on to `follow` as soon as it is there. */
function followed(turn: BegunTurn, follow: ((output: Output) => void) | undefined): BegunTurn {
  if (follow === undefined) return turn;
  const output = turn.output.then((value) => {
    follow(value);
    return value;
  });
  output.catch(() => {}); // a caller that only reads the chunks sees the failure there
  return { stream: turn.stream, output, steer: turn.steer };
}

/** One turn on a separate connection. */
function streamOverSocket(
  transport: Transport,
  agent: string,
  input: Input,
  options?: RemoteRunOptions,
): BegunTurn {
  const connection = connect(transport, agent, options);
  // An input that is refused has no output; the refusal takes its place.
  const output = connection.send(identified(input, options)).then(() => connection.output());
  output.catch((error: unknown) => connection.abort(error));
  return {
    stream: connection.receive(),
    output,
    steer: (message, request) => connection.steer(message, request),
  };
}
