import type { Agent, CallOptions } from '../../agent/contract/agent.ts';
import { isSnapshotId } from '../../protocol/ids.ts';
import type { Message } from '../../protocol/message.ts';
import type { Operation } from '../../protocol/routes.ts';
import type { Artifact } from '../../protocol/state.ts';
import type { Fields } from '../http/json-rpc.ts';
import { questionsOf } from '../http/question.ts';
import { outputIn } from '../http/served-app.ts';
import { type OpenCall, openAgentCall, type RequestContext } from '../http/server-context.ts';
import { type Chain, isInterrupted, readChain, stateOfChain } from '../stream/turn-chain.ts';
import { unknownTask } from './errors.ts';
import { dataPart, textPart, toParts } from './shapes.ts';

/** A turn as a task, with the turns that answer its interrupts. Its id is that of the first turn's snapshot. */
export interface Task extends Chain {
  readonly agent: Agent;
}

export interface OpenTask extends Task, OpenCall {}

/** The label of a cancelled task that waited for input: its snapshot cannot be aborted any more. */
export const cancelledLabel = 'canceled';

const states = {
  working: 'TASK_STATE_WORKING',
  completed: 'TASK_STATE_COMPLETED',
  failed: 'TASK_STATE_FAILED',
  cancelled: 'TASK_STATE_CANCELED',
  waiting: 'TASK_STATE_INPUT_REQUIRED',
} as const;

export type TaskState = (typeof states)[keyof typeof states];

/** Finds a task of this caller; that of another owner is unknown. */
export async function openTask(
  { agent, c }: { readonly agent: Agent; readonly c: RequestContext },
  taskId: string,
  operation: Operation,
): Promise<OpenTask> {
  if (!isSnapshotId(taskId)) throw unknownTask(taskId);
  const open = await openAgentCall(c, { agent, operation, snapshotId: taskId });
  const task = await readTask(agent, taskId, open.options);
  if (!task) throw unknownTask(taskId);
  return { ...open, ...task };
}

export async function readTask(
  agent: Agent,
  taskId: string,
  options: CallOptions,
): Promise<Task | undefined> {
  const chain = await readChain(agent, taskId, options);
  return chain && { agent, ...chain };
}

/** Waits while the task is worked on. A run whose worker has died is taken over by another one. */
export async function waitForTask(task: Task, options: CallOptions): Promise<Task> {
  const { agent, root } = task;
  let current = task;
  while (stateOf(current) === 'TASK_STATE_WORKING') {
    await agent.wait(current.tip.snapshotId, options);
    current = (await readTask(agent, root.snapshotId, options)) ?? current;
  }
  return current;
}

export function stateOf(task: Task): TaskState {
  const state = stateOfChain(task);
  const isOver = state === 'waiting' && task.tip.label === cancelledLabel;
  return states[isOver ? 'cancelled' : state];
}

export function isTerminal(state: TaskState): boolean {
  return state !== 'TASK_STATE_WORKING' && state !== 'TASK_STATE_INPUT_REQUIRED';
}

export interface TaskView {
  /** The number of messages, the last ones; absent: all. */
  readonly historyLength?: number | undefined;
  /** @default true */
  readonly artifacts?: boolean;
}

export async function describeTask(
  task: Task,
  options: CallOptions,
  { historyLength, artifacts = true }: TaskView = {},
): Promise<Fields> {
  const { root } = task;
  const history = historyLength === 0 ? [] : await historyOf(task, options);
  return {
    id: root.snapshotId,
    contextId: root.sessionId,
    status: await statusOf(task),
    artifacts: artifacts ? await artifactsOf(task) : undefined,
    history:
      historyLength === undefined ? history : history.slice(-historyLength || history.length),
  };
}

/** The status of a task, with its questions or its error. */
export async function statusOf(task: Task): Promise<Fields> {
  const { tip } = task;
  const state = stateOf(task);
  const parts = await statusParts(task, state);
  const message =
    parts.length > 0 ? agentMessage(task, `${tip.snapshotId}:status`, parts) : undefined;
  return { state, timestamp: tip.updatedAt, message };
}

async function statusParts({ agent, tip }: Task, state: TaskState): Promise<readonly Fields[]> {
  if (state === 'TASK_STATE_FAILED') return [textPart(tip.error?.message ?? 'The turn failed.')];
  if (state !== 'TASK_STATE_INPUT_REQUIRED') return [];
  const questions = await questionsOf(agent, tip.snapshotId, tip.interrupts);
  return [
    ...questions.map(({ message }) => textPart(message)),
    dataPart({
      questions: questions.map(({ key, message, form }) => ({ key, message, schema: form.schema })),
    }),
  ];
}

export function agentMessage(
  { root }: Pick<Task, 'root'>,
  messageId: string,
  parts: readonly Fields[],
): Fields {
  const { snapshotId: taskId, sessionId: contextId } = root;
  return { messageId, taskId, contextId, role: 'ROLE_AGENT', parts };
}

/** The id of the artifact that is the agent's answer. */
export const responseId = 'response';

/** The answer of the agent and the artifacts of the session, as far as the task has come. */
export async function artifactsOf({ agent, tip }: Task): Promise<readonly Fields[]> {
  const { messages = [], artifacts = [] } = tip.state ?? {};
  const isAnswered = tip.status === 'succeeded' && !isInterrupted(tip);
  const response = isAnswered ? await responseOf(agent, messages) : [];
  return [
    ...(response.length > 0 ? [{ artifactId: responseId, name: responseId, parts: response }] : []),
    ...artifacts.flatMap((artifact, index) => describeArtifact(artifact, index)),
  ];
}

/** The answer of the agent. Structured output is data. */
async function responseOf(agent: Agent, messages: readonly Message[]): Promise<readonly Fields[]> {
  const last = messages.at(-1);
  if (last?.role !== 'model') return [];
  const value = await outputIn(agent, last);
  return [...toParts(last.content), ...(value === undefined ? [] : [dataPart(value)])];
}

export function describeArtifact({ name, parts }: Artifact, index: number): Fields[] {
  const shown = toParts(parts);
  if (shown.length === 0) return [];
  return [{ artifactId: `artifact:${name ?? index}`, name: name || undefined, parts: shown }];
}

async function historyOf(task: Task, options: CallOptions): Promise<readonly Fields[]> {
  const { agent, root, tip } = task;
  const { parentId: snapshotId } = root;
  const parent = snapshotId && (await agent.getSnapshot({ snapshotId }, options));
  const before = parent ? (parent.state?.messages?.length ?? 0) : 0;
  const messages = tip.state?.messages ?? [];
  return messages.slice(before).flatMap((message, index) => {
    const parts =
      message.role === 'user' || message.role === 'model' ? toParts(message.content) : [];
    if (parts.length === 0) return [];
    const messageId = sentId(message) ?? `${root.snapshotId}:${index}`;
    const shown = agentMessage(task, messageId, parts);
    return [message.role === 'user' ? { ...shown, role: 'ROLE_USER' } : shown];
  });
}

/** The id that the client gave its message. */
function sentId({ role, metadata }: Message): string | undefined {
  const id = role === 'user' ? metadata?.a2aMessageId : undefined;
  return typeof id === 'string' ? id : undefined;
}
