import { interruptsOf } from '../../api/interrupts.ts';
import type { Message, ToolResponsePart } from '../../protocol/message.ts';
import type { Artifact } from '../../protocol/state.ts';
import type { Chunk, Output, Usage } from '../../protocol/turn.ts';
import { toolCallId } from '../http/turns-of.ts';
import { activityOf } from './history.ts';
import { isClientTool } from './interrupts.ts';
import { Lane } from './lane.ts';
import { type AguiEvent, asText, userMessageId } from './shapes.ts';

export interface RunPlace {
  readonly threadId: string;
  readonly runId: string;
  /** Whether the client speaks 1.0; older ones refuse some of its fields. */
  readonly isCurrent: boolean;
  /** The calls whose results the client shows already. */
  readonly answered: ReadonlySet<string>;
}

/** Turns the chunks of one turn into events, in an order that clients accept. */
export class AguiEncoder {
  readonly #place: RunPlace;
  readonly #lane: Lane;
  readonly #subagents = new Map<string, Lane>();
  #out: AguiEvent[] = [];
  /** The snapshot of the running turn, once it has started. */
  turnId = 'turn';
  /** Whether another worker has taken over the turn: its messages are then told as a whole, when it ends. */
  isTakenOver = false;
  #step: { readonly name: string; readonly message: string } | undefined;
  #steps = 0;
  #artifacts = 0;

  constructor(place: RunPlace) {
    this.#place = place;
    this.#lane = new Lane((event) => this.#out.push(event), { answered: place.answered });
  }

  take(): readonly AguiEvent[] {
    const events = this.#out;
    this.#out = [];
    return events;
  }

  chunk(chunk: Chunk): void {
    const { agent, agentRef, turnStart, modelChunk, steered, status, artifact, customPatch } =
      chunk;
    if (artifact) this.#artifact(artifact);
    if (agent !== undefined) {
      if (agentRef !== undefined && (modelChunk || status !== undefined)) {
        this.#inside(agent, agentRef, chunk);
      }
      return;
    }
    if (turnStart?.snapshotId !== undefined) this.turnId = turnStart.snapshotId;
    if (modelChunk) this.#says(modelChunk);
    if (steered) this.#steered(steered);
    if (status !== undefined) this.#push({ type: 'CUSTOM', name: 'status', value: status });
    if (customPatch) this.#state(customPatch);
  }

  /** Another worker has taken over the turn. Which of its messages stand, only the store knows. */
  takeOver(): void {
    this.#closeAll({ error: 'Another worker has taken over the run.' });
    this.isTakenOver = true;
  }

  /** The end of the run. `interrupts` are those of the agent's own tools. */
  finish(output: Output, interrupts: readonly object[]): void {
    const { error, finishReason = 'unknown', snapshotId, message, usage } = output;
    const pending = interruptsOf(message).filter(isClientTool);
    // A call that an earlier run of the thread made, and that only waits for its result now.
    if (!this.isTakenOver) {
      for (const { request } of pending) this.#lane.request(request, `${this.turnId}:calls`);
    }
    this.#closeAll(endingOf(output));
    if (error) {
      this.fail(error.message, error.status, usage);
      return;
    }
    const { threadId, runId } = this.#place;
    const ids = pending.map(({ request }) => toolCallId(request.toolRequest));
    const outcome = this.#outcome(finishReason, ids, interrupts);
    this.#push({
      type: 'RUN_FINISHED',
      threadId,
      runId,
      result: output.output,
      outcome,
      usage: usageOf(usage),
      metadata: { snapshotId, finishReason },
    });
  }

  fail(message: string, code: string, usage?: Usage): void {
    this.#push({ type: 'RUN_ERROR', message, code, usage: usageOf(usage) });
  }

  #outcome(
    finishReason: string,
    pendingToolCallIds: readonly string[],
    interrupts: readonly object[],
  ): object | undefined {
    if (interrupts.length > 0) return { type: 'interrupt', interrupts };
    // Clients before 1.0 know success and interrupt only, and take no other field.
    if (!this.#place.isCurrent) return undefined;
    if (finishReason === 'aborted') return { type: 'cancelled' };
    const ids = pendingToolCallIds.length > 0 ? pendingToolCallIds : undefined;
    return { type: 'success', pendingToolCallIds: ids };
  }

  #says({ role, index = 0, content }: NonNullable<Chunk['modelChunk']>): void {
    if (this.isTakenOver) return;
    const message = `${this.turnId}:${index}`;
    if (role !== 'tool') this.#enterStep(message);
    for (const part of content) {
      if ('toolResponse' in part && part.metadata?.partial !== true) this.#returned(part);
      this.#lane.part(part, message);
    }
  }

  /** A message that was added to the running turn, under the id that it has in the thread. */
  #steered(message: Message): void {
    if (this.isTakenOver) return;
    this.#leaveStep();
    const messageId = userMessageId(message, `${this.turnId}:steered`);
    this.#push({ type: 'TEXT_MESSAGE_START', messageId, role: 'user' });
    for (const part of message.content) {
      const { metadata: _, ...value } = part;
      if (!('text' in part)) {
        this.#push({ type: 'CUSTOM', name: 'part', value: { messageId, ...value } });
      } else if (part.text !== '') {
        this.#push({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta: part.text });
      }
    }
    this.#push({ type: 'TEXT_MESSAGE_END', messageId });
  }

  /** The call of a sub-agent has its result. */
  #returned({ toolResponse, metadata }: ToolResponsePart): void {
    const ref = toolCallId(toolResponse);
    const error = metadata?.error === undefined ? undefined : asText(toolResponse.output);
    this.#leaveSubagents((id) => id === ref || id.startsWith(`${ref}/`), { error });
  }

  /** One step for each call of the model, with the tools that it asks for. */
  #enterStep(message: string): void {
    if (this.#step?.message === message) return;
    this.#leaveStep();
    this.#step = { name: `step-${++this.#steps}`, message };
    this.#push({ type: 'STEP_STARTED', stepName: this.#step.name });
  }

  #leaveStep(): void {
    this.#lane.close();
    if (this.#step) this.#push({ type: 'STEP_FINISHED', stepName: this.#step.name });
    this.#step = undefined;
  }

  #inside(agent: string, agentRef: string, { modelChunk, status }: Chunk): void {
    if (this.isTakenOver) return;
    const lane = this.#laneOf(agent, agentRef);
    const { index = 0, content = [] } = modelChunk ?? {};
    for (const part of content) lane.part(part, `${this.turnId}:${agentRef}:${index}`);
    if (status === undefined) return;
    this.#push({ type: 'CUSTOM', name: 'status', value: status, subagentRunId: agentRef });
  }

  #laneOf(agent: string, subagentRunId: string): Lane {
    const known = this.#subagents.get(subagentRunId);
    if (known) return known;
    const at = subagentRunId.lastIndexOf('/');
    const outer = at < 0 ? undefined : subagentRunId.slice(0, at);
    // An agent that only passes on what its own sub-agents say has not said anything before.
    if (outer !== undefined) this.#laneOf(agent.slice(0, agent.lastIndexOf('/')), outer);
    this.#push({
      type: 'SUBAGENT_STARTED',
      subagentRunId,
      name: agent.slice(agent.lastIndexOf('/') + 1),
      parentSubagentRunId: outer,
      // The call of the agent above has this id, see Lane.
      parentToolCallId: subagentRunId,
    });
    const lane = new Lane((event) => this.#out.push(event), { subagentRunId });
    this.#subagents.set(subagentRunId, lane);
    return lane;
  }

  #artifact(artifact: Artifact): void {
    const place = artifact.name === undefined ? this.#artifacts++ : 0;
    const { id, activityType, content } = activityOf(artifact, place);
    const of = artifact.name === undefined ? `${this.turnId}:${id}` : id;
    this.#push({ type: 'ACTIVITY_SNAPSHOT', messageId: of, activityType, content, replace: true });
  }

  #state(patch: NonNullable<Chunk['customPatch']>): void {
    const [first] = patch;
    // The first change of a turn brings the whole state.
    if (patch.length === 1 && first?.op === 'replace' && first.path === '') {
      this.#push({ type: 'STATE_SNAPSHOT', snapshot: first.value ?? null });
    } else this.#push({ type: 'STATE_DELTA', delta: patch });
  }

  #closeAll(ending: Ending): void {
    this.#leaveSubagents(() => true, ending);
    this.#leaveStep();
  }

  #leaveSubagents(isMeant: (id: string) => boolean, { error, isSuspended }: Ending): void {
    for (const [subagentRunId, lane] of [...this.#subagents].reverse()) {
      if (!isMeant(subagentRunId)) continue;
      this.#subagents.delete(subagentRunId);
      lane.close();
      if (error === undefined) {
        const outcome = { type: isSuspended === true ? 'suspended' : 'success' };
        this.#push({ type: 'SUBAGENT_FINISHED', subagentRunId, outcome });
      } else this.#push({ type: 'SUBAGENT_ERROR', subagentRunId, message: error });
    }
  }

  #push(event: AguiEvent): void {
    this.#out.push(event);
  }
}

interface Ending {
  readonly error?: string | undefined;
  readonly isSuspended?: boolean;
}

function endingOf({ error, finishReason }: Output): Ending {
  if (error) return { error: error.message };
  if (finishReason === 'aborted') return { error: 'The run was stopped.' };
  return { isSuspended: finishReason === 'interrupted' };
}

const counted = {
  inputTokens: 'inputTokens',
  outputTokens: 'outputTokens',
  totalTokens: 'totalTokens',
  reasoningTokens: 'reasoningTokens',
  cachedInputTokens: 'cachedInputTokens',
  cacheWriteInputTokens: 'cacheWriteTokens',
} as const;

function usageOf(usage: Usage | undefined): readonly object[] | undefined {
  const counts = Object.entries(counted).flatMap(([name, field]) => {
    const count = usage?.[field];
    return Number.isSafeInteger(count) ? [[name, count] as const] : [];
  });
  return counts.length === 0 ? undefined : [Object.fromEntries(counts)];
}
