import { type AgentOperations, createCalls } from '../../api/calls.ts';
import { WaymarkError } from '../../core/error.ts';
import { type JsonObject, toJson } from '../../core/json/json.ts';
import type { OptionNames } from '../../core/options.ts';
import { checkId, checkLookup, fitsLookup } from '../../protocol/lookup.ts';
import type { SessionInfo } from '../../protocol/session.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { Input } from '../../protocol/turn.ts';
import { diffStates } from '../../session/diff.ts';
import { fromPlainState } from '../../session/session-state.ts';
import type { ExpectHead, Scope, Store, TimelineSupport } from '../../store/contract/store.ts';
import { Connection } from '../connection/connection.ts';
import { TurnStream, type TurnStreamOptions } from '../connection/turn-stream.ts';
import type { AgentHost } from '../persistence/host.ts';
import { toRunInfo } from '../persistence/run-info.ts';
import { transformSnapshot, transformState } from '../persistence/transform.ts';
import { waitForRun, watchRun } from '../persistence/watch.ts';
import type { Agent, CallOptions, InvokeOptions, RunOptions } from '../spec/agent.ts';
import { parseInit } from '../spec/init.ts';
import { type AgentSpec, fullStore, scopeOf } from '../spec/spec.ts';
import type { InvocationRequest } from '../turn/invocation-state.ts';
import { withPendingInput } from '../turn/pending-input.ts';
import { underRequest } from '../turn/requests.ts';
import { retryDeadRun, toDeadRun } from './dead-runs.ts';
import { metadataOf } from './metadata.ts';

/** An agent's insides, for the layers that run agents on behalf of others. */
export interface AgentInternals {
  readonly spec: AgentSpec;
  readonly host: AgentHost;
  /** As `agent.stream`; the result also has its cursor. */
  stream(input: Input, options?: RunOptions): TurnStream;
  /** As `agent.streamBidi`; the connection also has its cursor. */
  connect(options?: InvokeOptions): Connection;
}

const internals = new WeakMap<object, AgentInternals>();

/** The insides of an agent of this process. */
export function internalsOf(agent: Agent): AgentInternals {
  const found = internals.get(agent);
  if (found === undefined) {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      'Expected an agent that was defined in this process.',
    );
  }
  return found;
}

const optionNames: OptionNames<RunOptions> = {
  sessionId: true,
  snapshotId: true,
  state: true,
  from: true,
  ifHead: true,
  onReset: true,
  signal: true,
  owner: true,
  context: true,
  model: true,
  accept: true,
  remote: true,
  queue: true,
  requestId: true,
  throwOnError: true,
};

/** The public face of an agent. */
export function createAgent(spec: AgentSpec, host: AgentHost): Agent {
  const open = (options: InvokeOptions = {}): Connection =>
    new Connection(spec, host, () => requestOf(spec, options));
  const begin = (
    input: Input,
    options: RunOptions = {},
    follow?: TurnStreamOptions['follow'],
  ): TurnStream =>
    new TurnStream(open(options), underRequest(input, options), {
      signal: options.signal,
      follow,
    });
  const agent: Agent = {
    name: spec.name,
    ...(spec.description !== undefined && { description: spec.description }),
    metadata: metadataOf(spec),
    ...createCalls<CallOptions, InvokeOptions>({
      optionNames,
      begin,
      streamBidi: open,
      ...reading(spec, host, () => agent),
      ...timeline(spec, host),
    }),
  };
  internals.set(agent, { spec, host, stream: begin, connect: open });
  return agent;
}

/** The request of an invocation, with its init and context parsed. */
export function requestOf(
  spec: AgentSpec,
  options: InvokeOptions & { readonly startedBy?: SessionInfo['startedBy'] },
): InvocationRequest {
  const { snapshotId, sessionId, state, owner, context = {}, model, signal, startedBy } = options;
  const { ifHead, ...init } = parseInit(spec, {
    snapshotId,
    sessionId,
    state,
    ...(options.ifHead !== undefined && { ifHead: options.ifHead }),
  });
  return {
    init,
    ...(ifHead !== undefined && { ifHead }),
    mode: options.accept === true ? 'accepted' : 'attached',
    context: toJson(context, 'context') as JsonObject,
    ...(owner !== undefined && { owner }),
    ...(model !== undefined && { model }),
    ...(signal && { signal }),
    ...(startedBy && { startedBy }),
    ...(options.remote === true && { remote: true }),
    ...(options.queue && { queue: options.queue }),
  };
}

type Operations = AgentOperations<CallOptions, InvokeOptions>;

type Reading = Pick<
  Operations,
  'getSnapshot' | 'wait' | 'watch' | 'abort' | 'listRuns' | 'listDeadRuns' | 'retryRun'
>;

function reading(spec: AgentSpec, host: AgentHost, self: () => Agent): Reading {
  const runs = fullStore(spec)?.runs;
  const watching = (runId: string, { owner, signal }: CallOptions) => {
    checkSnapshotText(runId);
    return { spec, host, scope: scopeOf(spec, owner), runId, signal };
  };
  return {
    async getSnapshot(given, { owner } = {}) {
      const lookup = checkLookup(given);
      if (spec.store === undefined) throw noStore(spec);
      const scope = scopeOf(spec, owner);
      const snapshot = await spec.store.getSnapshot(scope, lookup);
      if (snapshot === undefined || !fitsLookup(lookup, snapshot.sessionId)) return undefined;
      return transformSnapshot(spec.transform, await withPendingInput(spec, scope, snapshot));
    },
    async wait(snapshotId, options = {}) {
      const run = watching(snapshotId, options);
      capability(spec, 'runs');
      return await waitForRun(run);
    },
    async *watch(snapshotId, options = {}) {
      const run = watching(snapshotId, options);
      capability(spec, 'runs');
      yield* watchRun(run, options.after);
    },
    async abort(snapshotId, { owner } = {}) {
      checkSnapshotText(snapshotId);
      return await capability(spec, 'abort').abortSnapshot(scopeOf(spec, owner), snapshotId);
    },
    async listRuns({ owner } = {}) {
      const runs = await capability(spec, 'runs').listRuns(scopeOf(spec, owner));
      return runs.map((run) => toRunInfo(run, spec, host));
    },
    async listDeadRuns({ owner } = {}) {
      const scope = scopeOf(spec, owner);
      const known = await host.dispatcher?.deadRuns?.(scope);
      return known ?? ((await runs?.listDeadRuns?.(scope)) ?? []).map(toDeadRun);
    },
    async retryRun(snapshotId, { owner } = {}) {
      checkSnapshotText(snapshotId);
      const scope = scopeOf(spec, owner);
      const begun = await host.dispatcher?.retry?.(scope, snapshotId);
      return begun ?? (await retryDeadRun(self(), runs, scope, snapshotId));
    },
  };
}

type Timeline = Omit<Operations, keyof Reading | 'optionNames' | 'begin' | 'streamBidi'>;

function timeline(spec: AgentSpec, host: AgentHost): Timeline {
  const use = (owner: string | undefined): [TimelineSupport, Scope] => [
    capability(spec, 'timeline'),
    scopeOf(spec, owner),
  ];
  const leaving = (snapshot: Snapshot): Snapshot => transformSnapshot(spec.transform, snapshot);
  return {
    async listSnapshots(sessionId, { owner, ...options } = {}) {
      checkSessionText(sessionId);
      const [sessions, scope] = use(owner);
      return await sessions.listSnapshots(scope, sessionId, withoutSignal(options));
    },
    async getSession(sessionId, { owner } = {}) {
      checkSessionText(sessionId);
      const [sessions, scope] = use(owner);
      const session = await sessions.getSession(scope, sessionId, { state: true });
      if (session?.state === undefined) return session;
      const { state, ...rest } = session;
      const shown = transformState(spec.transform, state);
      return shown === undefined ? rest : { ...rest, state: shown };
    },
    async listSessions({ owner, ...options } = {}) {
      const [sessions, scope] = use(owner);
      return await sessions.listSessions(scope, withoutSignal(options));
    },
    async updateSession(sessionId, change, { owner } = {}) {
      checkSessionText(sessionId);
      const [sessions, scope] = use(owner);
      return await sessions.updateSession(scope, sessionId, change);
    },
    async deleteSession(sessionId, { owner } = {}) {
      checkSessionText(sessionId);
      const [sessions, scope] = use(owner);
      host.cache.delete(scope, sessionId);
      return await sessions.deleteSession(scope, sessionId);
    },
    async restore(snapshotId, { owner, ifHead } = {}) {
      checkSnapshotText(snapshotId);
      const [sessions, scope] = use(owner);
      return leaving(await sessions.restore(scope, snapshotId, expecting(ifHead)));
    },
    async fork(snapshotId, { owner, ifHead, sessionId = host.newId() } = {}) {
      checkSnapshotText(snapshotId);
      checkSessionText(sessionId);
      const [sessions, scope] = use(owner);
      const target = { sessionId, snapshotId: host.newId(), ...expecting(ifHead) };
      return leaving(await sessions.fork(scope, snapshotId, target));
    },
    async label(snapshotId, label, { owner, ifHead } = {}) {
      checkSnapshotText(snapshotId);
      const [sessions, scope] = use(owner);
      return leaving(await sessions.label(scope, snapshotId, label, expecting(ifHead)));
    },
    async diff(from, to, { owner } = {}) {
      checkSnapshotText(from);
      checkSnapshotText(to);
      const [, scope] = use(owner);
      const [a, b] = await Promise.all([from, to].map((id) => stateOf(spec, scope, id)));
      return diffStates(
        { snapshotId: from, state: fromPlainState(a ?? {}) },
        { snapshotId: to, state: fromPlainState(b ?? {}) },
      );
    },
  };
}

function expecting(ifHead: string | undefined): ExpectHead {
  if (ifHead === undefined) return {};
  checkId(ifHead, 'the snapshot id of a head');
  return { expectHead: ifHead };
}

function checkSnapshotText(id: string): void {
  checkId(id, 'a snapshot id');
}

function checkSessionText(id: string): void {
  checkId(id, 'a session id');
}

async function stateOf(
  spec: AgentSpec,
  scope: Scope,
  snapshotId: string,
): Promise<Snapshot['state']> {
  const snapshot = await spec.store?.getSnapshot(scope, { snapshotId });
  if (snapshot === undefined) {
    throw new WaymarkError(
      'NOT_FOUND',
      `No snapshot "${snapshotId.slice(0, 64)}" of agent "${spec.name}".`,
    );
  }
  return transformSnapshot(spec.transform, snapshot).state;
}

function withoutSignal<Options extends object>(
  options: Options & { signal?: AbortSignal },
): Omit<Options, 'signal'> {
  const { signal: _, ...rest } = options;
  return rest;
}

function capability<Name extends 'runs' | 'abort' | 'timeline' | 'events'>(
  spec: AgentSpec,
  name: Name,
): NonNullable<Store[Name]> {
  const found = fullStore(spec)?.[name];
  if (found !== undefined) return found;
  if (spec.store === undefined) throw noStore(spec);
  throw new WaymarkError(
    'FAILED_PRECONDITION',
    `The store of agent "${spec.name}" has no ${name}. Use one that has, such as sqliteStore.`,
  );
}

function noStore(spec: AgentSpec): WaymarkError {
  return new WaymarkError(
    'FAILED_PRECONDITION',
    `Agent "${spec.name}" has no store: its state is held by the client. Give it one to use this.`,
  );
}
