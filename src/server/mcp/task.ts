import type { Agent } from '../../agent/spec/agent.ts';
import type { LoadedSnapshot, WireTypes } from '../../api/types.ts';
import { findJson } from '../../generate/output/find-json.ts';
import { isSnapshotId } from '../../protocol/ids.ts';
import { textOf } from '../../protocol/messages/text.ts';
import type { Operation } from '../../protocol/routes.ts';
import { outputOfSnapshot } from '../../protocol/snapshot-output.ts';
import type { Output } from '../../protocol/turn.ts';
import { isSnapshotId } from '../../store/rules/ids.ts';
import { short } from '../http/errors.ts';
import { structuredOutput } from '../http/question.ts';
import { type OpenCall, openAgentCall } from '../http/server-context.ts';
import { type ChainEnd, chainEnd, isInterrupted } from '../http/turn-chain.ts';
import { codes, type Fields, McpError } from './errors.ts';
import type { McpRequest, McpServer } from './mcp-server.ts';

type Snapshot = LoadedSnapshot<WireTypes>;

/**
 * A background run as a task. Its id names the run; what it has come to is read from the snapshots, so that any process on
 * the same store can tell, also after the one that started it was killed.
 */
export interface Task extends OpenCall, ChainEnd {
  readonly taskId: string;
  /** The run that began it. */
  readonly root: Snapshot;
}

export function toTaskId({ name }: Agent, snapshotId: string): string {
  return `${name}:${snapshotId}`;
}

/** Finds a task of this caller; that of another owner is unknown. */
export async function openTask(
  mcp: McpServer,
  { c }: McpRequest,
  taskId: string,
  operation: Operation,
): Promise<Task> {
  const [, name, snapshotId = ''] = /^(.+):([^:]+)$/s.exec(taskId) ?? [];
  const agent = [...mcp.offered().values()].find((each) => each.name === name);
  if (!agent || !isSnapshotId(snapshotId)) throw unknownTask(taskId);
  const open = await openAgentCall(mcp.serverContext, c, { agent, operation, snapshotId });
  const root = await agent.getSnapshot({ snapshotId }, open.options);
  if (!root) throw unknownTask(taskId);
  return { ...open, taskId, root, ...(await chainEnd(agent, root, open.options)) };
}

/** The output of the last run. */
export async function outputOf({ agent, tip }: Task): Promise<Output> {
  const output = outputOfSnapshot(tip);
  if (tip.status === 'aborted') return { ...output, snapshotId: tip.snapshotId };
  if (!(await structuredOutput(agent))) return output;
  // A snapshot has the text of the answer only.
  const value = findJson(textOf(output.message));
  return value === undefined ? output : { ...output, output: value };
}

/** The word of the protocol for the status of a task. */
export function statusOf({ tip, isLeft }: Pick<Task, 'tip' | 'isLeft'>): string {
  switch (tip.status) {
    case 'pending':
    // Its worker has died; another one takes over.
    case 'expired':
      return 'working';
    case 'succeeded':
      if (isInterrupted(tip)) return isLeft ? 'cancelled' : 'input_required';
      // It was stopped, and kept its partial answer.
      return tip.finishReason === 'aborted' ? 'cancelled' : 'completed';
    case 'failed':
      return 'failed';
    case 'aborted':
      return 'cancelled';
  }
}

/** Milliseconds after which a client may ask again. */
const pollMs = 1000;

/** What both generations of tasks tell. */
export function describeTask(task: Task, era: 'modern' | 'legacy'): Fields {
  const { taskId, root, tip } = task;
  return {
    taskId,
    status: statusOf(task),
    createdAt: root.createdAt,
    lastUpdatedAt: tip.updatedAt,
    ...(era === 'modern'
      ? { ttlMs: null, pollIntervalMs: pollMs }
      : { ttl: null, pollInterval: pollMs }),
  };
}

function unknownTask(taskId: string): McpError {
  return new McpError(codes.invalidParams, `There is no task ${short(taskId)} here.`);
}
