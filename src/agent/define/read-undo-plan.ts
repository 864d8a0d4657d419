import { failedPrecondition } from '../../core/error.ts';
import { defined } from '../../core/json/json.ts';
import type { Tool } from '../../generate/tool/tool.ts';
import type { UndoAction } from '../../generate/tool/undo.ts';
import type { Message, Part } from '../../protocol/message.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { PlannedEffect, UndoPlan } from '../../protocol/undo.ts';
import type { EffectSupport, Scope, StoredEffect } from '../../store/contract/store.ts';
import { notFound, notSucceeded } from '../../store/rules/errors.ts';
import type { AgentSpec } from '../contract/spec.ts';
import type { AgentHost } from '../persistence/host.ts';
import { unknownSnapshot } from '../persistence/store-errors.ts';
import { transformState } from '../persistence/transform.ts';
import { supportOf } from './run-operations.ts';
import {
  type CallRecord,
  callsIn,
  type LeftPath,
  leftPath,
  type Place,
  type PlannedCall,
  planEffects,
  planIdOf,
  trimmedFrom,
} from './undo-plan.ts';

export interface UndoContext {
  readonly spec: AgentSpec;
  readonly host: AgentHost;
  readonly scope: Scope;
}

/** A plan with the keys of its calls. */
export interface ReadPlan {
  readonly id: string;
  readonly sessionId: string;
  readonly headId: string;
  readonly targetId: string;
  readonly calls: readonly PlannedCall[];
}

/** How a stored effect is undone, and the tool that declares it. */
export interface FoundUndo {
  readonly action: UndoAction;
  readonly tool?: Tool;
}

/** The records of effects in the agent's store. */
export function effectsOf(spec: AgentSpec): EffectSupport {
  const { effects, timeline, runs } = spec.store ?? {};
  if (effects !== undefined && timeline !== undefined && runs !== undefined) return effects;
  supportOf(spec, 'runs');
  throw failedPrecondition(
    `The store of agent "${spec.name}" records no effects, so it cannot undo them. Use one that does, such as sqliteStore.`,
  );
}

/** The snapshot that a restore would make the head. */
export async function targetOf(context: UndoContext, snapshotId: string): Promise<Snapshot> {
  const { spec, scope } = context;
  const target = await spec.store?.getSnapshot(scope, { snapshotId });
  if (target === undefined) {
    throw await unknownSnapshot(spec, scope, snapshotId, notFound('snapshot', snapshotId));
  }
  if (target.status !== 'succeeded') throw notSucceeded(snapshotId, target.status);
  return target;
}

/** Finds the effects that a restore would leave behind, and what can be done about each. */
export async function readPlan(context: UndoContext, targetId: string): Promise<ReadPlan> {
  const { spec, scope } = context;
  const effects = effectsOf(spec);
  const timeline = supportOf(spec, 'timeline');
  const target = await targetOf(context, targetId);
  const { sessionId } = target;
  const headId = (await timeline.getSession(scope, sessionId))?.headId ?? targetId;
  const head = headId === targetId ? target : await targetOf(context, headId);
  const listed = await snapshotsOf(context, sessionId);
  // One that was saved without being listed.
  const unlisted = [head, target].filter(
    (each) => !listed.some(({ snapshotId }) => snapshotId === each.snapshotId),
  );
  const place: Place = { headId, targetId, snapshots: [...listed, ...unlisted] };
  const path = leftPath(place);
  const headMessages = head.state?.messages ?? [];
  const others = [...path.hanging, ...trimmedFrom(path, headMessages)];
  const calls: CallRecord[] = [...callsIn(headMessages, headId)];
  for (const id of others) calls.push(...callsIn(await messagesOf(context, id), id));
  const stored = await effects.list(scope, sessionId);
  const undos = new UndoFinder(context);
  const reasons = new Map<string, string | undefined>();
  for (const effect of stored) {
    const name = `${effect.agent ?? ''}\n${effect.tool}`;
    if (!reasons.has(name)) reasons.set(name, await undos.whyNot(effect));
  }
  const planned = planEffects({
    ...place,
    path,
    keptCalls: callsIn(target.state?.messages ?? [], targetId),
    calls,
    stored,
    deadRuns: await deadRunsOf(context, path, stored),
    forkPoints: await forkPointsOf(context, sessionId, stored),
    whyNot: ({ agent = '', tool }) => reasons.get(`${agent}\n${tool}`),
    whyUnknown: ({ tool }) =>
      `Tool "${tool}" had no \`undo\` when it was called, or the session was imported.`,
  });
  return { id: planIdOf(place, planned), sessionId, headId, targetId, calls: planned };
}

async function snapshotsOf(
  { spec, scope }: UndoContext,
  sessionId: string,
): Promise<readonly Snapshot[]> {
  const timeline = supportOf(spec, 'timeline');
  const found: Snapshot[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await timeline.listSnapshots(scope, sessionId, {
      includeOrphaned: true,
      limit: 1_000,
      ...defined({ cursor }),
    });
    found.push(...page.items);
    if (page.next === undefined) return found;
    cursor = page.next;
  }
}

async function messagesOf(
  { spec, scope }: UndoContext,
  snapshotId: string,
): Promise<readonly Message[]> {
  const snapshot = await spec.store?.getSnapshot(scope, { snapshotId });
  return snapshot?.state?.messages ?? [];
}

/** The runs of dead callers that hang on the path and have not given way yet. */
async function deadRunsOf(
  { spec, scope }: UndoContext,
  path: LeftPath,
  stored: readonly StoredEffect[],
): Promise<ReadonlySet<string>> {
  const unknown = new Set(stored.map(({ runId }) => runId).filter((id) => !path.byId.has(id)));
  const dead = new Set<string>();
  for (const runId of unknown) {
    const run = await spec.store?.runs?.getRun(scope, runId);
    if (run?.mode === 'attached' && run.expired && path.hangs(run.parentId)) dead.add(runId);
  }
  return dead;
}

/** Where the sessions that share effects left this one, also through other forks. */
async function forkPointsOf(
  { spec, scope }: UndoContext,
  sessionId: string,
  stored: readonly StoredEffect[],
): Promise<ReadonlyMap<string, string>> {
  const timeline = supportOf(spec, 'timeline');
  const points = new Map<string, string>();
  for (const id of new Set(stored.flatMap(({ sharedWith }) => sharedWith))) {
    let fork = (await timeline.getSession(scope, id))?.forkedFrom;
    while (fork !== undefined && fork.sessionId !== sessionId) {
      fork = (await timeline.getSession(scope, fork.sessionId))?.forkedFrom;
    }
    if (fork !== undefined) points.set(id, fork.snapshotId);
  }
  return points;
}

/** Finds the undo functions of the present code. */
export class UndoFinder {
  readonly #context: UndoContext;
  readonly #tools = new Map<string, Promise<ReadonlyMap<string, Tool> | undefined>>();

  constructor(context: UndoContext) {
    this.#context = context;
  }

  async find({ agent, tool: name }: StoredEffect): Promise<FoundUndo | undefined> {
    const { spec, host } = this.#context;
    const owner = agent === undefined ? spec : host.find.agent(agent);
    const own = owner?.undo?.get(name);
    if (own !== undefined) return { action: own };
    let tools = this.#tools.get(agent ?? '');
    if (tools === undefined) {
      // A source that is not available has no tools now.
      tools = Promise.resolve(owner?.tools?.()).catch(() => undefined);
      this.#tools.set(agent ?? '', tools);
    }
    const tool = (await tools)?.get(name) ?? (await host.find.tool(name));
    return tool?.undo && { action: tool.undo, tool };
  }

  async whyNot(effect: StoredEffect): Promise<string | undefined> {
    if ((await this.find(effect)) !== undefined) return undefined;
    return `This version of the code has no \`undo\` for "${effect.tool}".`;
  }
}

/** A plan as it may be shown: inputs and outputs leave as those in messages do. */
export function toUndoPlan({ spec }: UndoContext, plan: ReadPlan): UndoPlan {
  const { id, sessionId, targetId, calls } = plan;
  const shown = (role: 'model' | 'tool', part: Part): Part | undefined => {
    const state = { sessionId, messages: [{ role, content: [part] }] };
    return transformState(spec.transform, state)?.messages?.[0]?.content[0];
  };
  const effects = calls.map((call): PlannedEffect => {
    const { tool: name, agent, input, output, snapshotId, at, undo, reason } = call;
    const request = shown('model', {
      toolRequest: { name, ...(input !== undefined && { input }) },
    });
    const response = output && shown('tool', { toolResponse: { name, output: output[0] } });
    return defined({
      tool: name,
      agent,
      input: request && 'toolRequest' in request ? request.toolRequest.input : undefined,
      output: response && 'toolResponse' in response ? response.toolResponse.output : undefined,
      snapshotId,
      at,
      undo,
      reason,
    });
  });
  return { id, sessionId, snapshotId: targetId, effects };
}
