import type { PromptChanges } from '../agent/contract/spec.ts';
import { type AgentInternals, internalsOf, replicas } from '../agent/define/create-agent.ts';
import { replicaHost, replicaOf } from '../agent/define/replica.ts';
import { givenMemory } from '../agent/memory/given.ts';
import type { App } from '../app.ts';
import { toErrorBody, toWaymarkError } from '../core/error.ts';
import { defined, type JsonObject } from '../core/json/json.ts';
import { toolReplay } from '../generate/hooks.ts';
import type { ModelRef } from '../generate/model.ts';
import { withoutTree } from '../protocol/artifacts.ts';
import type { Input, Output } from '../protocol/turn.ts';
import { fromPlainState, type SessionState } from '../session/session-state.ts';
import type { MemoryVersion } from '../store/contract/store.ts';
import { memoryStore } from '../store/memory/memory-store.ts';
import { tokensOf } from './compare.ts';
import {
  addedBy,
  type RecordedSession,
  type RecordedTurn,
  type TurnSide,
} from './recorded-session.ts';
import { type RecordedTools, recordedTools, type ToolModes } from './recorded-tools.ts';
import { scratchWorkspaces } from './scratch-workspaces.ts';
import { type ReplayedTurn, replayedTurn } from './scripted-model-from.ts';

export interface TurnRun {
  readonly input: Input;
  /** The snapshot to start from; absent for the first turn of a session. */
  readonly from: string | undefined;
  readonly tools: ToolModes;
  readonly model: ModelRef | undefined;
  readonly context: JsonObject;
  /** What the recorded turn was given from memory. */
  readonly memory: readonly MemoryVersion[] | undefined;
  readonly signal: AbortSignal | undefined;
}

export type ReplayedSide = Awaited<ReturnType<typeof replayTurn>>;

/** Runs a recorded turn again. A turn that is refused or fails is a result like any other. */
export async function replayTurn(scratch: Scratch, turn: RecordedTurn, run: TurnRun) {
  const tools = recordedTools(turn, run.tools);
  const replayed = { turn, modelCalls: 0 };
  const started = performance.now();
  const { output, snapshotId, error } = await scratch.inside(replayed, tools, () =>
    run.memory === undefined
      ? perform(scratch, run)
      : givenMemory.run(run.memory, () => perform(scratch, run)),
  );
  run.signal?.throwIfAborted();
  const time = performance.now() - started;
  const state = snapshotId === undefined ? undefined : await scratch.stateAt(snapshotId);
  const base = run.from === undefined ? undefined : await scratch.stateAt(run.from);
  const failure = error ?? output?.error;
  const side: TurnSide = {
    ...contentOf(scratch, base, state),
    finishReason: failure === undefined ? (output?.finishReason ?? 'other') : 'failed',
    ...defined({
      error: failure && toErrorBody(failure),
      output: output?.output,
      usage: output?.usage,
    }),
    time,
  };
  const callsModels = tools.models.length > 0 || tokensOf(side) > 0;
  const ignoresModel = run.model !== undefined && callsModels && !tools.models.includes(run.model);
  return {
    side,
    /** The snapshot that it ended with, if it ended well. */
    snapshotId: failure === undefined ? snapshotId : undefined,
    missing: tools.missing,
    /** The turn called models, and not the one that it was to be run with. */
    ignoresModel,
  };
}

async function perform(
  { agent, fork }: Scratch,
  { input, from, model, context, signal }: TurnRun,
): Promise<{ output?: Output; snapshotId?: string | undefined; error?: Error }> {
  let snapshotId: string | undefined;
  const { requestId: _, detach: __, ...asked } = input;
  try {
    // An interrupt is answered once in a session.
    const start = from !== undefined && input.resume !== undefined ? await fork(from) : from;
    const turn = agent.stream(asked, { context, ...defined({ snapshotId: start, model, signal }) });
    for await (const chunk of turn.stream) snapshotId ??= chunk.turnStart?.snapshotId;
    const output = await turn.output;
    return { output, snapshotId };
  } catch (error) {
    return { error: toWaymarkError(error) };
  }
}

function contentOf(
  { agent }: Scratch,
  base: SessionState | undefined,
  state: SessionState | undefined,
): Pick<TurnSide, 'messages' | 'toolCalls' | 'custom' | 'artifacts'> {
  const { custom, artifacts = [] } = state ?? base ?? {};
  const rest = { ...defined({ custom }), artifacts: withoutTree(artifacts) };
  if (state === undefined) return { messages: [], toolCalls: [], ...rest };
  const { messages, toolCalls } = addedBy(base, state, agent.spec.initialMessages ?? []);
  return { messages, toolCalls, ...rest };
}

export type Scratch = Awaited<ReturnType<typeof createScratch>>;

/** A copy of one session in memory, with the agent that continues it. The store that it came from is not touched. */
export async function createScratch(
  app: App,
  { session, document }: RecordedSession,
  changes: PromptChanges,
) {
  const store = memoryStore();
  const original = internalsOf(app.agent(session.agent));
  const scope = { agent: session.agent };
  // Failures of the replay are in its report.
  const host = replicaHost(original.host, () => {});
  const workspaces = scratchWorkspaces();
  const replica = (own: AgentInternals, changed?: PromptChanges): AgentInternals => {
    const workspace = workspaces.of(own.spec.workspace);
    return internalsOf(replicaOf(own, { host, store, changes: changed, workspace }));
  };
  const agent = replica(original, changes);
  await store.maintenance?.importSession(scope, document);
  const others = new Map<AgentInternals, AgentInternals>();
  const replicaFor = (other: AgentInternals): AgentInternals => {
    const made = others.get(other) ?? replica(other);
    others.set(other, made);
    return made;
  };
  return {
    agent,
    [Symbol.asyncDispose]: () => workspaces[Symbol.asyncDispose](),
    /** The state of a snapshot, also of a failed turn. */
    async stateAt(snapshotId: string): Promise<SessionState | undefined> {
      const loaded = await store.runs?.load(scope, { snapshotId }).catch(() => undefined);
      if (loaded !== undefined) return loaded.state;
      const { state } = (await store.getSnapshot(scope, { snapshotId })) ?? {};
      return state && fromPlainState(state);
    },
    /** A copy of a snapshot in a separate session. */
    async fork(snapshotId: string): Promise<string> {
      const target = { sessionId: host.newId(), snapshotId: host.newId() };
      await store.timeline?.fork(scope, snapshotId, target);
      return target.snapshotId;
    },
    /** Runs a turn in the place of a recorded one. */
    inside: <Value>(replayed: ReplayedTurn, tools: RecordedTools, fn: () => Value): Value =>
      replicas.run(replicaFor, () => toolReplay.run(tools, () => replayedTurn.run(replayed, fn))),
  };
}
