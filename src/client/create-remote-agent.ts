import type { ApiCallOptions, ApiInvokeOptions } from '../api/agent-api.ts';
import {
  type AgentOperations,
  type BegunTurn,
  createCalls,
  turnOptionNames,
} from '../api/calls.ts';
import { snapshotIdOf } from '../api/turn-values.ts';
import type { AgentTypes, WireTypes } from '../api/types.ts';
import { checkLookup, type Lookup } from '../protocol/ids.ts';
import type { MemoryVersionInfo } from '../protocol/memory.ts';
import { checkMessagePage } from '../protocol/message-page.ts';
import { type Fields, type Operation, type Route, routes } from '../protocol/routes.ts';
import type { Snapshot } from '../protocol/snapshot.ts';
import type { Input, Output } from '../protocol/turn.ts';
import { toToolSchema } from './caller-tool-schema.ts';
import { SocketConnection } from './connection.ts';
import { openRemoteFile } from './open-file.ts';
import type { ClientOptions } from './options.ts';
import type { RemoteAgent, RemoteRunOptions } from './remote-agent.ts';
import { identified } from './request-id.ts';
import { abortRun, steerRun } from './running-turn.ts';
import type { RemoteRequest, Transport } from './transport.ts';
import { streamTurn } from './turn-stream.ts';
import { waitForRun, watchRun } from './watch.ts';

export function createRemoteAgent<Types extends AgentTypes>(
  transport: Transport,
  name: string,
  turnsOver: NonNullable<ClientOptions['transport']>,
): RemoteAgent<Types> {
  const stream = turnsOver === 'http' ? streamTurn : streamOverSocket;
  // Sends only the options that the route names.
  const at = (
    operation: Operation,
    params: Readonly<Record<string, string>> = {},
    { signal, ...options }: ApiCallOptions & Fields = {},
  ): RemoteRequest => {
    const { method, fields }: Route = routes[operation];
    const request = { operation, params: { agent: name, ...params }, signal };
    if (!fields) return request;
    const all: Readonly<Record<string, unknown>> = options;
    const given = Object.fromEntries(fields.map((field) => [field, all[field]]));
    return { ...request, [method === 'GET' ? 'query' : 'body']: given };
  };
  const ask = <T>(...call: Parameters<typeof at>): Promise<T> => transport.json(at(...call));

  // If nothing is found, the agent itself may be unknown, which is an error.
  let known = false;
  const found = async <T>(answer: Promise<T | undefined>): Promise<T | undefined> => {
    const value = await answer;
    known ||= value !== undefined;
    if (!known) await describe();
    known = true;
    return value;
  };

  const find = <T>(...call: Parameters<typeof at>): Promise<T | undefined> =>
    found(transport.find<T>(at(...call)));
  const describe: RemoteAgent['describe'] = (options) => ask('getAgent', {}, options);

  const headOf = async (session: string, { signal }: ApiCallOptions = {}): Promise<string> => {
    const { snapshotId } = await ask<Snapshot>(
      'getHead',
      { session },
      { ...(signal && { signal }), last: 1 },
    );
    return snapshotId;
  };

  const operations: AgentOperations<ApiCallOptions, ApiInvokeOptions> = {
    optionNames: turnOptionNames,
    toJsonSchema: toToolSchema,
    // Streams single turns as well: only a stream tells the id by which a turn is stopped or found again.
    begin: (input, options, follow) => followed(stream(transport, name, input, options), follow),
    streamBidi: (options) => new SocketConnection(transport, name, options),

    getSnapshot: async (given, { messages, ...options } = {}) => {
      const lookup = checkLookup(given);
      checkMessagePage(messages);
      if (!('snapshotId' in lookup)) {
        return find('getHead', { session: lookup.sessionId }, { ...options, ...messages });
      }
      const { snapshotId: snapshot, sessionId } = lookup;
      return find('getSnapshot', { snapshot }, { ...options, ...messages, sessionId });
    },
    listSnapshots: async (session, options) =>
      (await find('listSnapshots', { session }, options)) ?? { items: [] },
    getSession: async (session, { messages, ...options } = {}) => {
      checkMessagePage(messages);
      return find('getSession', { session }, { ...options, ...messages });
    },
    listSessions: (options) => ask('listSessions', {}, options),
    listInterrupts: (options) => ask('listInterrupts', {}, options),
    updateSession: (session, change, options) =>
      transport.json({ ...at('updateSession', { session }, options), body: change }),
    deleteSession: async (session, options) =>
      (await find('deleteSession', { session }, options)) !== undefined,

    wait: (snapshotId, options) =>
      waitForRun<WireTypes>(transport, { agent: name, snapshotId }, options),
    watch: (snapshotId, options) => watchRun(transport, { agent: name, snapshotId }, options),
    steer: (snapshot, input, options) =>
      steerRun(transport, { agent: name, snapshot }, input, options),
    abort: async (snapshot, { signal } = {}) =>
      (await found(abortRun(transport, { agent: name, snapshot }, signal)))?.status,
    listRuns: (options) => ask('listRuns', {}, options),
    listDeadRuns: (options) => ask('listDeadRuns', {}, options),
    getUsage: ({ sessionId: session, ...options } = {}) =>
      ask('getUsage', {}, { ...options, session }),
    retryRun: (snapshot, options) => ask('retryRun', { snapshot }, options),

    listFiles: async (given, options) => {
      const lookup = checkLookup(given);
      const snapshot =
        'snapshotId' in lookup ? lookup.snapshotId : await headOf(lookup.sessionId, options);
      return ask('listFiles', { snapshot }, options);
    },
    restore: (snapshot, options) =>
      ask(options?.undo === undefined ? 'restore' : 'undo', { snapshot }, options),
    planUndo: (snapshot, options) => ask('planUndo', { snapshot }, options),
    memory: {
      list: ({ asOf, ...options } = {}) =>
        ask('listMemory', {}, { ...options, ...(asOf && { asOf: snapshotIdOf(asOf) }) }),
      history: async (entry, options) =>
        (await ask<{ items: readonly MemoryVersionInfo[] }>('memoryHistory', { entry }, options))
          .items,
      add: (value, options) => ask('addMemory', {}, { ...options, value }),
      update: (entry, value, options) => ask('updateMemory', { entry }, { ...options, value }),
      forget: async (entry, options) =>
        (await find('forgetMemory', { entry }, options)) !== undefined,
      ofTurn: (ref, options) => ask('memoryOfTurn', { snapshot: snapshotIdOf(ref) }, options),
    },
    fork: (snapshot, options) => ask('fork', { snapshot }, options),
    edit: (snapshot, change, options) => ask('edit', { snapshot }, { ...options, change }),
    diff: (snapshot, other, options) => ask('diff', { snapshot, other }, options),
    label: (snapshot, label, options) => ask('label', { snapshot }, { ...options, label }),
  };
  // The types are read off the agent's definition; on the wire, everything is JSON.
  const openFile: RemoteAgent['openFile'] = async (ref, file, options = {}) => {
    const lookup = checkLookup(typeof ref === 'string' ? { snapshotId: ref } : (ref as Lookup));
    const snapshot =
      'snapshotId' in lookup ? lookup.snapshotId : await headOf(lookup.sessionId, options);
    return await openRemoteFile(transport, at('openFile', { snapshot, file }, options), options);
  };
  const calls = { name, describe, openFile, ...createCalls(operations) };
  return calls as RemoteAgent as RemoteAgent<Types>;
}

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
  const connection = new SocketConnection(transport, agent, options);
  // An input that is refused has no output; the refusal takes its place.
  const output = connection.send(identified(input, options)).then(() => connection.output());
  output.catch((error: unknown) => connection.abort(error));
  return {
    stream: connection.receive(),
    output,
    steer: (message, request) => connection.steer(message, request),
  };
}
