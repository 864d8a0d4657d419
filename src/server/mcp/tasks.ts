import * as v from 'valibot';
import { toResume } from '../../api/interrupts.ts';
import { WaymarkError } from '../../core/error.ts';
import { parseShape } from '../../protocol/parse.ts';
import type { Init, Input } from '../../protocol/turn.ts';
import type { OpenCall } from '../http/server-context.ts';
import { isInterrupted } from '../http/turn-chain.ts';
import { startRun } from '../stream/turn.ts';
import { codes, type Fields } from './errors.ts';
import { toInputRequests } from './interrupted.ts';
import {
  inEra,
  type McpRequest,
  type McpServer,
  type Method,
  progressTokenOf,
} from './mcp-server.ts';
import { questionsOf } from './questions.ts';
import { toolResult } from './result.ts';
import { describeTask, openTask, outputOf, statusOf, type Task, toTaskId } from './task.ts';

export const tasksExtension = 'io.modelcontextprotocol/tasks';

export const taskParams = v.object({ taskId: v.string() });
const updateParams = v.object({
  taskId: v.string(),
  inputResponses: v.record(v.string(), v.unknown()),
});

/**
 * Whether a call is to be a task. A client of 2025 asks for it; since 2026-07-28 a client says that it can handle one, and
 * gets one unless it wants to see the progress of the call.
 */
export function isTaskCall(request: McpRequest, { agent }: OpenCall): boolean {
  const { era, params } = request;
  if (!agent.metadata.detachable) return false;
  if (era.kind === 'legacy') return typeof params.task === 'object' && params.task !== null;
  const { extensions } = era.capabilities;
  const declared = typeof extensions === 'object' && extensions && tasksExtension in extensions;
  return declared === true && progressTokenOf(request) === undefined;
}

/** Starts a turn in the background; it survives this process. */
export async function startTask(
  { serverContext }: McpServer,
  { era }: McpRequest,
  call: OpenCall & { readonly init: Init; readonly input: Input },
): Promise<Fields> {
  const { agent, caller, options, init, input } = call;
  const { id } = await startRun(serverContext, call, init, input);
  const root = await agent.getSnapshot({ snapshotId: id }, options);
  if (!root) throw new WaymarkError('INTERNAL', 'The run that was started is not in the store.');
  const task = {
    agent,
    caller,
    options,
    taskId: toTaskId(agent, id),
    root,
    tip: root,
    isLeft: false,
  };
  const described = describeTask(task, era.kind);
  return era.kind === 'modern' ? { resultType: 'task', ...described } : { task: described };
}

/** The methods of tasks, but for `tasks/result`, which waits. */
export const taskMethods: Readonly<Record<string, Method>> = {
  'tasks/get': {
    async run(mcp, request) {
      const { taskId } = parseShape(taskParams, request.params, 'request');
      const task = await openTask(mcp, request, taskId, 'getSnapshot');
      if (request.era.kind === 'legacy') return describeTask(task, 'legacy');
      return { ...describeTask(task, 'modern'), ...(await detailsOf(mcp, request, task)) };
    },
  },
  'tasks/update': {
    only: 'modern',
    async run(mcp, request) {
      const { taskId, inputResponses } = parseShape(updateParams, request.params, 'request');
      const task = await openTask(mcp, request, taskId, 'runTurn');
      const { tip, agent } = task;
      const { sessionId, snapshotId, interrupts } = tip;
      const questions = isInterrupted(tip) ? await questionsOf(agent, snapshotId, interrupts) : [];
      const answers = questions.flatMap(({ key, answer }) =>
        Object.hasOwn(inputResponses, key) ? (answer(inputResponses[key]) ?? []) : [],
      );
      if (questions.length === 0 || answers.length < questions.length) throw notAsked(questions);
      const init = { sessionId, ifHead: snapshotId };
      await startRun(mcp.serverContext, task, init, { resume: toResume(answers) });
      return {};
    },
  },
  'tasks/cancel': {
    async run(mcp, request) {
      const { taskId } = parseShape(taskParams, request.params, 'request');
      const { agent, tip, options } = await openTask(mcp, request, taskId, 'abort');
      await agent.abort(tip.snapshotId, options);
      if (request.era.kind === 'modern') return {};
      return describeTask(await openTask(mcp, request, taskId, 'getSnapshot'), 'legacy');
    },
  },
};

function notAsked(questions: readonly { readonly key: string }[]): WaymarkError {
  const keys = questions.map(({ key }) => key).join(', ');
  return new WaymarkError(
    'FAILED_PRECONDITION',
    questions.length === 0
      ? 'The task does not wait for an answer; it may have been answered already.'
      : `The task waits for the answers to all of: ${keys}.`,
  );
}

async function detailsOf(mcp: McpServer, request: McpRequest, task: Task): Promise<Fields> {
  const { agent, tip } = task;
  if (isInterrupted(tip)) {
    const questions = await questionsOf(agent, tip.snapshotId, tip.interrupts);
    return { inputRequests: toInputRequests(questions) };
  }
  if (statusOf(task) === 'completed') {
    const result = toolResult(agent, await outputOf(task), { links: true });
    return { result: inEra(mcp, request.era, result) };
  }
  if (tip.status !== 'failed') return {};
  const { status = 'UNKNOWN', message = 'The turn failed.' } = tip.error ?? {};
  return { error: { code: codes.refused, message, data: { status } } };
}
