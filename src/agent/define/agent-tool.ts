import { subAgentRequests, toSubAgentResume } from '../../api/interrupts.ts';
import type { AgentTypes } from '../../api/types.ts';
import { failedPrecondition, toPublicError, WaymarkError } from '../../core/error.ts';
import { defined, isJsonObject, type Json } from '../../core/json/json.ts';
import { checkOptions } from '../../core/options.ts';
import { checkAnswers, planResume } from '../../generate/tool/resume.ts';
import { type Tool, tool } from '../../generate/tool/tool.ts';
import { deadlineOf, type ToolContext } from '../../generate/tool/tool-context.ts';
import { withoutTree } from '../../protocol/artifacts.ts';
import type { ToolRequestPart } from '../../protocol/message.ts';
import { isInterrupted, openToolRequests, requestKey, textOf } from '../../protocol/messages.ts';
import { parseShape } from '../../protocol/parse.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { Artifact } from '../../protocol/state.ts';
import {
  type Chunk,
  type Input,
  type Output,
  type Resume,
  resume as resumeShape,
} from '../../protocol/turn.ts';
import { addUsage } from '../../protocol/usage.ts';
import { toPlainState } from '../../session/session-state.ts';
import { isSameArtifact, ToolEffects } from '../../session/working-state.ts';
import { Connection, TurnStream, textInput } from '../connection/connection.ts';
import type { Agent, InvokeOptions } from '../contract/agent.ts';
import { markReported } from '../contract/error-reports.ts';
import { transformAnswer } from '../persistence/transform.ts';
import { invocationOf } from '../turn/invocation.ts';
import type { InvocationState } from '../turn/invocation-state.ts';
import { lastRound } from '../turn/turn-state.ts';
import { type AgentInternals, internalsOf, replicas, requestOf } from './create-agent.ts';

/** Options of a tool that calls an agent. */
export interface AgentToolOptions {
  /** The name of the tool for the model. @default the agent's name */
  readonly name?: string;
  /** Tells the model when to use it. @default the agent's description */
  readonly description?: string;
}

const messageInput = {
  type: 'object',
  properties: { message: { type: 'string', description: 'What the agent is asked to do.' } },
  required: ['message'],
} as const;

/**
 * Offers an agent to another one as a tool. It runs in the foreground, in its own session that is linked to the parent's snapshot.
 * Its chunks come through marked with its name, its artifacts under its name, its interrupts as those of the tool; their
 * answers continue inside it. Stopping the parent stops it.
 *
 * @example
 * const researcher = app.defineAgent({ name: 'researcher', system: 'Find sources.' });
 * app.defineAgent({ name: 'writer', system: 'Write.', tools: [agentTool(researcher)] });
 */
export function agentTool<Types extends AgentTypes>(
  agent: Agent<Types>,
  options: AgentToolOptions = {},
): Tool {
  checkOptions(options, { name: true, description: true }, 'agentTool()');
  const internals = internalsOf(agent as unknown as Agent);
  const { spec } = internals;
  const { name = spec.name, description = spec.description ?? `Asks the agent ${spec.name}.` } =
    options;
  const about = { name, description, input: messageInput, effect: 'none' } as const;
  const made = tool(about, async (input, context) => {
    const parent = invocationOf(context);
    const own = replicas.get()?.(internals) ?? internals;
    const done = await finishedBefore(own, parent, context);
    const output = done ?? (await runInside(own, parent, context, textField(input, 'message')));
    return resultOf(spec.name, parent, context, output);
  });
  return {
    ...made,
    checkResumed: (resumed, interrupted) => checkInnerAnswers(internals, resumed, interrupted),
  };
}

/** A text of a tool's input, which its schema has checked. */
function textField(input: Json, name: string): string {
  const value =
    typeof input === 'object' && input !== null && name in input ? Object(input)[name] : '';
  return String(value);
}

async function runInside(
  { spec, host }: AgentInternals,
  parent: InvocationState | undefined,
  context: ToolContext,
  message: string,
): Promise<Output> {
  const { input, start } = inputOf(spec, parent, context, message);
  const options = { ...start, ...callOf(parent), signal: context.signal };
  const connection = new Connection(spec, host, () => ({
    ...requestOf(spec, options),
    // The usage of the sub-agent counts for the turn that called it.
    ...(parent && { parent }),
  }));
  const { stream, output } = new TurnStream(connection, input);
  for await (const chunk of stream) await passOn(parent, spec.name, context.ref, chunk);
  return await output;
}

/** The options that a sub-agent's session takes over from the turn that starts it. */
function callOf(parent: InvocationState | undefined): Parameters<typeof requestOf>[1] {
  if (parent === undefined) return {};
  const { scope, request, position, run, spec } = parent;
  const snapshotId = spec.store && run?.runId;
  return defined({
    owner: scope.owner,
    context: request.context,
    startedBy: defined({ agent: spec.name, sessionId: position.sessionId, snapshotId }),
  });
}

/** A second attempt of the parent's turn finds what the first one already came to: its session has the same id. */
async function finishedBefore(
  { spec }: AgentInternals,
  parent: InvocationState | undefined,
  { idempotencyKey, interrupted }: ToolContext,
): Promise<Output | undefined> {
  const again = (parent?.run?.turnBase.run?.attempt ?? 1) > 1;
  if (!again || spec.store === undefined || isPlace(interrupted) || parent === undefined)
    return undefined;
  const scope = { ...parent.scope, agent: spec.name };
  const found = await spec.turnStore.load(scope, { sessionId: idempotencyKey });
  if (found === undefined) return undefined;
  const { snapshot, state } = found;
  const { history } = state;
  const artifacts = withoutTree(state.artifacts);
  const message = history.at(-1);
  const { callsIn } = await import('./undo-plan.ts');
  for (const { key, at, tool, agent = spec.name, input } of callsIn(history.toArray(), '')) {
    ToolEffects.noteCall(state, defined({ key, at, tool, agent, input }));
  }
  // The attempt that started it was lost with its count.
  if (parent.turn !== undefined) parent.turn.usage = addUsage(parent.turn.usage, snapshot.usage);
  return {
    sessionId: snapshot.sessionId,
    snapshotId: snapshot.snapshotId,
    ...transformAnswer(spec.transform, () => toPlainState(state), { message, artifacts }),
    ...(snapshot.finishReason && { finishReason: snapshot.finishReason }),
  };
}

/** A fresh message in a fresh session, or an answer to the interrupt that the sub-agent is waiting at. */
function inputOf(
  spec: AgentInternals['spec'],
  parent: InvocationState | undefined,
  { idempotencyKey, resumed, interrupted, ref }: ToolContext,
  message: string,
): { readonly input: Input; readonly start: Start } {
  if (resumed === undefined || !isPlace(interrupted)) {
    return {
      input: textInput(message),
      start: spec.store === undefined ? {} : { sessionId: idempotencyKey },
    };
  }
  const place = waitingPlace(parent, spec.name, ref);
  const resume = toInnerResume(spec.name, resumed, interrupted);
  return { input: { resume }, start: place };
}

function resultOf(
  agent: string,
  parent: InvocationState | undefined,
  context: ToolContext,
  output: Output,
): Json {
  const { error, finishReason, message, snapshotId, sessionId, state } = output;
  if (error !== undefined) {
    const { status, message: reason } = toPublicError(error);
    const failure = new WaymarkError('UNKNOWN', `Agent "${agent}" failed: ${reason}`, {
      details: { status },
      cause: error,
    });
    // The sub-agent has reported it.
    markReported(failure);
    throw failure;
  }
  if (parent !== undefined) bringArtifacts(parent, agent, output.artifacts ?? []);
  if (finishReason === 'interrupted') {
    const requests = interruptsOf(output);
    context.interrupt(
      defined({
        agent,
        sessionId,
        snapshotId,
        state: state as unknown as Json | undefined,
        requests: requests as unknown as Json,
      }),
      deadlineOf(requests),
    );
  }
  return output.output ?? (message === undefined ? '' : textOf(message));
}

/** Adds the artifacts that have not arrived as chunks before: those that were there, or came after the sub-agent's last turn. */
function bringArtifacts(parent: InvocationState, agent: string, given: readonly Artifact[]): void {
  const { working, chunkSink } = parent;
  for (const each of given) {
    const artifact = namespaced(agent, each);
    if (working.state.artifacts.some((other) => isSameArtifact(other, artifact))) continue;
    working.addArtifacts([artifact], { quiet: true, files: 'stored' });
    chunkSink.push({ artifact, agent });
  }
}

/** Shows what the sub-agent says in the parent's stream. What is about its own session stays with it. */
async function passOn(
  parent: InvocationState | undefined,
  agent: string,
  ref: string,
  chunk: Chunk,
): Promise<void> {
  if (parent === undefined) return;
  const { modelChunk, status, artifact } = chunk;
  const named = artifact && namespaced(agent, artifact);
  if (named !== undefined) parent.working.addArtifacts([named], { quiet: true, files: 'stored' });
  if (modelChunk === undefined && status === undefined && named === undefined) return;
  await parent.chunkSink.send(
    defined({
      modelChunk,
      status,
      artifact: named,
      agent: chunk.agent === undefined ? agent : `${agent}/${chunk.agent}`,
      agentRef: chunk.agentRef === undefined ? ref : `${ref}/${chunk.agentRef}`,
    }),
  );
}

function namespaced(agent: string, artifact: Artifact): Artifact {
  return artifact.name === undefined
    ? artifact
    : { ...artifact, name: `${agent}/${artifact.name}` };
}

type Start = Pick<InvokeOptions, 'snapshotId' | 'sessionId' | 'state'>;

/** Refuses answers that the sub-agent would refuse, so that its interrupts stay open. */
async function checkInnerAnswers(
  { spec }: AgentInternals,
  resumed: Json,
  interrupted: Json,
): Promise<void> {
  // Something else waited before the sub-agent was called, such as an approval.
  if (!isPlace(interrupted)) return;
  const resume = toInnerResume(spec.name, resumed, interrupted);
  const requests = subAgentRequests(interrupted);
  const tools = await spec.tools?.().catch(() => undefined);
  if (tools && requests.every(({ toolRequest }) => tools.has(toolRequest.name))) {
    await planResume([{ role: 'model', content: [...requests] }], resume, tools);
  } else {
    // Tools that only a call of the agent has are checked by that call.
    checkWithoutTools(requests, resume);
  }
}

/** Refuses answers to other requests than these, and to others than those that wait inside them. */
function checkWithoutTools(requests: readonly ToolRequestPart[], resume: Resume): void {
  // A custom agent need not show what it waits for.
  if (requests.length === 0) return;
  for (const answer of checkAnswers([{ role: 'model', content: [...requests] }], resume)) {
    if (!('entry' in answer) || !('toolRequest' in answer.entry)) continue;
    const interrupted = answer.request.metadata?.interrupt;
    if (!isPlace(interrupted)) continue;
    const inner = toInnerResume(
      interrupted.agent,
      answer.entry.metadata?.resumed ?? true,
      interrupted,
    );
    checkWithoutTools(subAgentRequests(interrupted), inner);
  }
}

/** The answers for the sub-agent in those for the call of its tool. */
function toInnerResume(agent: string, resumed: Json, interrupted: Json): Resume {
  const given = toSubAgentResume(resumed, interrupted);
  return parseShape(resumeShape, given, `resume of sub-agent "${agent}"`);
}

/** Where the sub-agent stopped to wait, as its interrupt in the parent's conversation says. */
function waitingPlace(parent: InvocationState | undefined, agent: string, ref: string): Start {
  const open =
    parent === undefined ? [] : openToolRequests(lastRound(parent.working.state.history));
  for (const { toolRequest, metadata } of open) {
    const payload = metadata?.interrupt;
    if ((toolRequest.ref ?? toolRequest.name) !== ref || !isPlace(payload)) continue;
    if (payload.agent !== agent) continue;
    const { snapshotId, state } = payload;
    return snapshotId === undefined ? { ...(state && { state }) } : { snapshotId };
  }
  throw failedPrecondition(
    `Sub-agent "${agent}" is not waiting for this answer. Restart the request that carries its interrupt.`,
  );
}

interface Place {
  readonly agent: string;
  readonly snapshotId?: string;
  readonly state?: NonNullable<Start['state']>;
}

/** Whether a call waits for something inside a sub-agent, rather than for an approval of the call. */
function isPlace(payload: Json | undefined): payload is Json & Place {
  return (
    isJsonObject(payload) && typeof payload.agent === 'string' && Array.isArray(payload.requests)
  );
}

/** The interrupts that the output of a sub-agent waits for. */
function interruptsOf({ message }: Output): readonly ToolRequestPart[] {
  const seen = new Set<string>();
  return (message?.content ?? []).filter((part): part is ToolRequestPart => {
    if (!('toolRequest' in part) || !isInterrupted(part) || seen.has(requestKey(part.toolRequest)))
      return false;
    seen.add(requestKey(part.toolRequest));
    return true;
  });
}

const runInput = {
  type: 'object',
  properties: { runId: { type: 'string', description: 'What the start tool returned.' } },
  required: ['runId'],
} as const;

/**
 * Offers an agent to another one as four tools for background runs: `{name}_start` returns a run id, `{name}_check`,
 * `{name}_wait` and `{name}_abort` take it. The runs outlive the parent's turn and its process.
 *
 * @example
 * app.defineAgent({ name: 'lead', system: 'Plan.', tools: [...backgroundAgentTools(researcher)] });
 */
export function backgroundAgentTools<Types extends AgentTypes>(
  typed: Agent<Types>,
  options: AgentToolOptions = {},
): readonly Tool[] {
  const agent = typed as unknown as Agent;
  const { spec, host } = internalsOf(agent);
  if (!agent.metadata.detachable) {
    throw failedPrecondition(
      `Agent "${spec.name}" cannot work in the background: give it a store that can abort runs.`,
    );
  }
  const shared = spec.workspace?.from;
  if (typeof shared === 'object' && !shared.isPerSession) {
    throw failedPrecondition(
      `Agent "${spec.name}" cannot work in the background of another one: its sessions share the workspace "${shared.name}". Give each session a folder of its own, with directory.perSession().`,
    );
  }
  const { name = spec.name, description = spec.description ?? `the agent ${spec.name}` } = options;
  const start = tool(
    {
      name: `${name}_start`,
      description: `Starts in the background: ${description}`,
      input: messageInput,
      effect: 'none',
    },
    async (input, context) => {
      if (replicas.get() !== undefined) throw notInReplay(name);
      const call = callOf(invocationOf(context));
      const connection = new Connection(spec, host, () => requestOf(spec, call));
      const { snapshotId = '' } = await new TurnStream(connection, {
        ...textInput(textField(input, 'message')),
        detach: true,
      }).output;
      return { runId: snapshotId };
    },
  );
  const onRun = (
    what: string,
    about: string,
    fn: (runId: string, context: ToolContext) => Promise<Reported | undefined>,
  ): Tool =>
    tool(
      { name: `${name}_${what}`, description: about, input: runInput, effect: 'none' },
      async (input, context) => {
        const runId = textField(input, 'runId');
        return report(await fn(runId, context), runId);
      },
    );
  return [
    start,
    onRun('check', 'Says how a background run stands.', (snapshotId, context) =>
      agent.getSnapshot({ snapshotId }, ownerOf(context)),
    ),
    onRun('wait', 'Waits for a background run to end.', (runId, context) =>
      agent.wait(runId, { ...ownerOf(context), signal: context.signal }),
    ),
    onRun('abort', 'Stops a background run.', async (runId, context) => {
      const status = await agent.abort(runId, ownerOf(context));
      return status && { status };
    }),
  ];
}

function ownerOf(context: ToolContext): { readonly owner?: string } {
  const { owner } = invocationOf(context)?.scope ?? {};
  return owner === undefined ? {} : { owner };
}

type Reported = Pick<Snapshot, 'status'> & Partial<Pick<Snapshot, 'error' | 'state'>>;

function report(snapshot: Reported | undefined, runId: string): Json {
  if (snapshot === undefined) {
    throw new WaymarkError(
      'NOT_FOUND',
      `No run "${runId.slice(0, 64)}". Use an id that the start tool returned.`,
    );
  }
  const { status, state, error } = snapshot;
  const last = state?.messages?.at(-1);
  return defined({
    status,
    text: last?.role === 'model' ? textOf(last) : undefined,
    error: error?.message,
  });
}

function notInReplay(name: string): WaymarkError {
  return failedPrecondition(
    `A replay starts no background runs. Answer the tools of "${name}" from the record.`,
  );
}
