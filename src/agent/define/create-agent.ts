import { createCalls, turnOptionNames } from '../../api/calls.ts';
import { failedPrecondition, invalid, WaymarkError } from '../../core/error.ts';
import { defined, type JsonObject, toJson } from '../../core/json/json.ts';
import type { OptionNames } from '../../core/options.ts';
import { type ContextKey, createContextKey } from '../../core/platform.ts';
import { toJsonSchema } from '../../core/schema/schema.ts';
import { checkLookup, type Lookup, scopeOf } from '../../protocol/ids.ts';
import type { Message } from '../../protocol/message.ts';
import { isParsedMessage, parseShape } from '../../protocol/parse.ts';
import type { SessionInfo } from '../../protocol/session.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { Artifact } from '../../protocol/state.ts';
import { type Init, type Input, init as initShape } from '../../protocol/turn.ts';
import { historyOf, toKnownMessages } from '../../session/session-state.ts';
import type { FilePlace } from '../../store/contract/store.ts';
import { Connection, TurnStream, type TurnStreamOptions } from '../connection/connection.ts';
import type { Agent, CallOptions, InvokeOptions, RunOptions } from '../contract/agent.ts';
import type { AgentSpec } from '../contract/spec.ts';
import type { AgentHost } from '../persistence/host.ts';
import { type FileArtifact, openArtifact, openFile } from '../turn/files.ts';
import { underRequest } from '../turn/inputs.ts';
import type { InvocationRequest } from '../turn/invocation-state.ts';
import { takesInbox } from '../turn/steer.ts';
import { runOperations } from './run-operations.ts';
import { timelineOperations } from './timeline-operations.ts';

/** An agent's insides, for the layers that run agents on behalf of others. */
export interface AgentInternals {
  readonly spec: AgentSpec;
  readonly host: AgentHost;
  /** As `agent.stream`; the result also has its cursor. */
  stream(input: Input, options?: RunOptions): TurnStream;
  /** As `agent.streamBidi`; the connection also has its cursor. */
  connect(options?: InvokeOptions): Connection;
  /** Opens the file that an artifact of a snapshot is; `undefined` if it is something else. */
  openArtifact(
    snapshot: Pick<Snapshot, 'sessionId' | 'snapshotId'>,
    artifact: Artifact,
    owner: string | undefined,
  ): Promise<FileArtifact | undefined>;
}

const internals = new WeakMap<object, AgentInternals>();

/** Set in a replay: what works on the copy in the place of an agent. */
export const replicas: ContextKey<(original: AgentInternals) => AgentInternals> =
  createContextKey('waymark.replicas');

/** The insides of an agent of this process. */
export function internalsOf(agent: Agent): AgentInternals {
  const found = internals.get(agent);
  if (found === undefined) {
    throw invalid('Expected an agent that was defined in this process.');
  }
  return found;
}

const optionNames: OptionNames<RunOptions> = {
  ...turnOptionNames,
  owner: true,
  context: true,
  model: true,
  accept: true,
  remote: true,
  queue: true,
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
  const files = fileOperations(spec, () => agent);
  const agent: Agent = {
    name: spec.name,
    ...(spec.description !== undefined && { description: spec.description }),
    metadata: metadataOf(spec),
    openFile: files.openFile,
    checkout: files.checkout,
    ...createCalls<CallOptions, InvokeOptions>({
      optionNames,
      toJsonSchema,
      begin,
      streamBidi: open,
      ...runOperations(spec, host, () => agent),
      ...timelineOperations(spec, host),
    }),
  };
  internals.set(agent, {
    spec,
    host,
    stream: begin,
    connect: open,
    openArtifact: files.openArtifact,
  });
  return agent;
}

/** The request of an invocation, with its init and context parsed. */
export function requestOf(
  spec: AgentSpec,
  options: InvokeOptions & { readonly startedBy?: SessionInfo['startedBy'] },
): InvocationRequest {
  const { snapshotId, sessionId, state, owner, context = {}, model, signal, startedBy } = options;
  // A run does not store the head that it expects.
  const { ifHead, ...init } = parseInit(spec, {
    snapshotId,
    sessionId,
    state,
    from: options.from === null ? null : undefined,
    ifHead: options.ifHead,
  });
  return {
    init,
    ifHead,
    mode: options.accept === true ? 'accepted' : 'attached',
    context: toJson(context, 'context') as JsonObject,
    owner,
    model,
    signal,
    startedBy,
    remote: options.remote,
    queue: options.queue,
  };
}

/** Where a caller wants to start; nothing in it has been checked. */
interface GivenInit {
  readonly snapshotId: unknown;
  readonly sessionId: unknown;
  readonly state: { readonly messages?: unknown } | undefined;
  readonly from: null | undefined;
  readonly ifHead: unknown;
}

/** Parses where to start, and refuses what this agent cannot start from. */
function parseInit(spec: AgentSpec, value: GivenInit): Init {
  const init = parseShapeOf(value);
  const { snapshotId, sessionId, from, ifHead } = init;
  const named = [snapshotId, sessionId, from, ifHead].some((each) => each !== undefined);
  if (init.state !== undefined && named) {
    throw invalid('Give either a state or an id to start from, not both.');
  }
  if (spec.store !== undefined && init.state !== undefined) {
    throw failedPrecondition(
      `Agent "${spec.name}" keeps its sessions in a store. Start it with { sessionId } or { snapshotId } instead of a state.`,
    );
  }
  if (spec.store === undefined && named) {
    throw failedPrecondition(
      `Agent "${spec.name}" has no store, so it keeps no sessions. Pass \`store\` to waymark(), or start from { state }, the state of an earlier output.`,
    );
  }
  if (from === null && (sessionId === undefined || snapshotId !== undefined)) {
    throw invalid(
      '`from: null` starts at the beginning of a session: pass it with its `sessionId`, and without a snapshot.',
    );
  }
  return init;
}

// A state that an earlier turn of this process gave out holds messages that were checked then and cannot have changed:
// checking them all in each turn would make a turn slower the longer the conversation is.
function parseShapeOf(value: GivenInit): Init {
  if (value.state === undefined) return parseShape(initShape, value, 'init');
  const { messages, ...state } = value.state;
  const known = knownMessages(messages);
  if (known === undefined) return parseShape(initShape, value, 'init');
  const init = parseShape(initShape, { ...value, state }, 'init');
  return { ...init, state: { ...init.state, messages: known } };
}

/** A copy of messages that need not be checked again; the caller may change the array afterwards. */
function knownMessages(messages: unknown): Message[] | undefined {
  if (!Array.isArray(messages)) return undefined;
  const history = historyOf(messages);
  if (history !== undefined) return toKnownMessages(history);
  return messages.every(isParsedMessage) ? [...messages] : undefined;
}

function metadataOf(spec: AgentSpec): Agent['metadata'] {
  const { store } = spec;
  const claims = store?.runs !== undefined;
  return defined({
    stateManagement: spec.store === undefined ? ('client' as const) : ('server' as const),
    abortable: store?.abort !== undefined,
    detachable: claims && store?.abort !== undefined,
    watchable: claims && store?.events !== undefined,
    timeline: store?.timeline !== undefined,
    claims,
    requestIds: claims,
    steerable: takesInbox({ spec }),
    store: store?.name,
    memory: spec.memory?.name,
    stateSchema: spec.stateSchema && toJsonSchema(spec.stateSchema),
  });
}

/** How an agent opens the files of its snapshots: a caller opens what it can read with `getSnapshot`, and nothing else. */
function fileOperations(
  spec: AgentSpec,
  self: () => Agent,
): Pick<Agent, 'openFile' | 'checkout'> & Pick<AgentInternals, 'openArtifact'> {
  const placeOf = (
    { sessionId, snapshotId }: Pick<Snapshot, 'sessionId' | 'snapshotId'>,
    owner: string | undefined,
  ): FilePlace => ({ scope: scopeOf(spec, owner), sessionId, runId: snapshotId });
  return {
    async openFile(ref, name, { range, owner, workspace = false, ...options } = {}) {
      // The messages are not needed.
      const call = { ...options, ...(owner !== undefined && { owner }), messages: { last: 1 } };
      const snapshot = await self().getSnapshot(ref, call);
      if (snapshot === undefined) {
        throw new WaymarkError(
          'NOT_FOUND',
          `There is no such session or snapshot of agent "${spec.name}".`,
        );
      }
      const artifact = snapshot.state?.artifacts?.find((each) => each.name === name);
      const place = placeOf(snapshot, owner);
      if (workspace || (artifact === undefined && spec.workspace !== undefined)) {
        const { openWorkspaceFile } = await import('./read-files.ts');
        const { snapshotId } = snapshot;
        return await openWorkspaceFile(spec, place.scope, { snapshotId }, name, range && { range });
      }
      return await openFile(spec, place, { artifact, name }, range && { range });
    },
    async checkout(ref, folder, { owner, context = {} } = {}) {
      const lookup = checkLookup(typeof ref === 'string' ? { snapshotId: ref } : (ref as Lookup));
      const { checkout } = await import('./read-files.ts');
      const scope = scopeOf(spec, owner);
      return { skipped: await checkout(spec, { scope, context }, lookup, folder) };
    },
    openArtifact: (snapshot, artifact, owner) =>
      openArtifact(spec, placeOf(snapshot, owner), artifact),
  };
}
