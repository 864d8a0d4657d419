import type { Agent, CallOptions } from '../../agent/contract/agent.ts';
import { parseShape } from '../../protocol/parse.ts';
import { endsTurn } from '../../protocol/snapshot.ts';
import type { Fields, RpcError } from '../http/json-rpc.ts';
import { openAgentCall } from '../http/server-context.ts';
import { isAnswer } from '../stream/turn-chain.ts';
import type { A2aRequest } from './a2a-server.ts';
import { a2aError, codes } from './errors.ts';
import { listParams } from './shapes.ts';
import { describeTask, readTask, stateOf, type Task } from './task.ts';

/** How many sessions are searched, the last changed ones, and how many snapshots of each. */
const maxSessions = 100;
const maxSnapshots = 200;

const states = [
  'TASK_STATE_UNSPECIFIED',
  'TASK_STATE_SUBMITTED',
  'TASK_STATE_WORKING',
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_REJECTED',
  'TASK_STATE_AUTH_REQUIRED',
];

/** `ListTasks`: the tasks of a caller, the last changed ones first. */
export async function listTasks(request: A2aRequest): Promise<Fields> {
  const { agent, c } = request;
  const params = parseShape(listParams, request.params, 'request');
  const { contextId, pageSize = 50, pageToken, historyLength = 0, includeArtifacts } = params;
  if (pageSize < 1 || pageSize > 100) throw invalid('pageSize must be from 1 to 100.');
  const offset = pageToken === undefined ? 0 : Number(pageToken);
  if (!Number.isSafeInteger(offset) || offset < 0)
    throw invalid('pageToken is not one that this server returned.');
  const status = statusIn(params.status);
  const after = params.statusTimestampAfter;
  if (after !== undefined && Number.isNaN(Date.parse(after))) {
    throw invalid('statusTimestampAfter must be a time in ISO 8601.');
  }
  const { options } = await openAgentCall(c, {
    agent,
    operation: contextId === undefined ? 'listSessions' : 'listSnapshots',
    sessionId: contextId,
  });
  const found = (await tasksOf(agent, contextId, options)).filter(
    (task) =>
      (status === undefined || stateOf(task) === status) &&
      (after === undefined || Date.parse(task.tip.updatedAt) >= Date.parse(after)),
  );
  found.sort((a, b) => b.tip.updatedAt.localeCompare(a.tip.updatedAt));
  const view = { historyLength, artifacts: includeArtifacts === true };
  const page = found.slice(offset, offset + pageSize);
  const next = offset + pageSize;
  return {
    tasks: await Promise.all(page.map((task) => describeTask(task, options, view))),
    nextPageToken: next < found.length ? String(next) : '',
    pageSize,
    totalSize: found.length,
  };
}

async function tasksOf(
  agent: Agent,
  contextId: string | undefined,
  options: CallOptions,
): Promise<Task[]> {
  const sessions =
    contextId === undefined
      ? (await agent.listSessions({ ...options, limit: maxSessions })).items
      : [{ sessionId: contextId }];
  const tasks: Task[] = [];
  for (const { sessionId } of sessions) {
    for (const id of await rootsOf(agent, sessionId, options)) {
      const task = await readTask(agent, id, options);
      if (task) tasks.push(task);
    }
  }
  return tasks;
}

/** The turns of a session that began a task: all but the answers to interrupts. */
async function rootsOf(
  agent: Agent,
  sessionId: string,
  options: CallOptions,
): Promise<readonly string[]> {
  const { items } = await agent.listSnapshots(sessionId, {
    ...options,
    includeOrphaned: true,
    limit: maxSnapshots,
  });
  const interrupted = new Set(
    items.filter((each) => each.finishReason === 'interrupted').map((each) => each.snapshotId),
  );
  const roots: string[] = [];
  for (const { snapshotId, parentId, event } of items) {
    if (!endsTurn(event)) continue;
    if (parentId === undefined || !interrupted.has(parentId)) roots.push(snapshotId);
    else {
      const [parent, child] = await Promise.all(
        [parentId, snapshotId].map((id) => agent.getSnapshot({ snapshotId: id }, options)),
      );
      if (parent && child && !isAnswer(parent, child)) roots.push(snapshotId);
    }
  }
  return roots;
}

function statusIn(status: string | number | null | undefined): string | undefined {
  if (status === undefined || status === null) return undefined;
  const name = typeof status === 'number' ? states[status] : status;
  if (name === undefined || !states.includes(name)) throw invalid('status is not a task state.');
  return name === 'TASK_STATE_UNSPECIFIED' ? undefined : name;
}

function invalid(message: string): RpcError {
  return a2aError(codes.invalidParams, message);
}
