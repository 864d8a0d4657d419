import * as v from 'valibot';
import { toResume } from '../../api/interrupts.ts';
import { raceSignal } from '../../core/async/signal.ts';
import { failedPrecondition, type WaymarkError } from '../../core/error.ts';
import { isSnapshotId } from '../../protocol/ids.ts';
import { parseShape } from '../../protocol/parse.ts';
import type { Operation } from '../../protocol/routes.ts';
import { outputOfSnapshot } from '../../protocol/snapshot-output.ts';
import type { Init, Input, Output } from '../../protocol/turn.ts';
import { short } from '../http/answer.ts';
import { type Fields, RpcError } from '../http/json-rpc.ts';
import { questionsOf } from '../http/question.ts';
import { outputIn } from '../http/served-app.ts';
import { type OpenCall, openAgentCall } from '../http/server-context.ts';
import {
  type Chain,
  continueChain,
  isInterrupted,
  readChain,
  startChain,
  stateOfChain,
} from '../stream/turn-chain.ts';
import { inEra, type McpRequest, type Method, progressTokenOf } from './mcp-server.ts';
import { codes } from './messages.ts';
import { answerOf, askUser, canAsk, toInputRequests, waitingResult } from './questions.ts';
import { toolResult } from './result.ts';
import { type Messages, type StreamIo, streamAnswer } from './stream-answer.ts';

export const tasksExtension = 'io.modelcontextprotocol/tasks';

const taskParams = v.object({ taskId: v.string() });
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
  { era, c }: McpRequest,
  call: OpenCall & { readonly init: Init; readonly input: Input },
): Promise<Fields> {
  const chain = await startChain(c, call, call.init, call.input);
  const taskId = `${call.agent.name}:${chain.root.snapshotId}`;
  const described = describeTask({ ...call, ...chain, taskId }, era.kind);
  return era.kind === 'modern' ? { resultType: 'task', ...described } : { task: described };
}

/** The methods of tasks, but for `tasks/result`, which waits. */
export const taskMethods: Readonly<Record<string, Method>> = {
  'tasks/get': {
    async run(request) {
      const { taskId } = parseShape(taskParams, request.params, 'request');
      const task = await openTask(request, taskId, 'getSnapshot');
      if (request.era.kind === 'legacy') return describeTask(task, 'legacy');
      return { ...describeTask(task, 'modern'), ...(await detailsOf(request, task)) };
    },
  },
  'tasks/update': {
    only: 'modern',
    async run(request) {
      const { taskId, inputResponses } = parseShape(updateParams, request.params, 'request');
      const task = await openTask(request, taskId, 'runTurn');
      const { tip, agent } = task;
      const { snapshotId, interrupts } = tip;
      const questions = isInterrupted(tip) ? await questionsOf(agent, snapshotId, interrupts) : [];
      const answers = questions.flatMap((each) =>
        Object.hasOwn(inputResponses, each.key)
          ? (answerOf(each, inputResponses[each.key]) ?? [])
          : [],
      );
      if (questions.length === 0 || answers.length < questions.length) throw notAsked(questions);
      await continueChain(request.c, task, { resume: toResume(answers) });
      return {};
    },
  },
  'tasks/cancel': {
    async run(request) {
      const { taskId } = parseShape(taskParams, request.params, 'request');
      const { agent, tip, options } = await openTask(request, taskId, 'abort');
      await agent.abort(tip.snapshotId, options);
      if (request.era.kind === 'modern') return {};
      return describeTask(await openTask(request, taskId, 'getSnapshot'), 'legacy');
    },
  },
};

function notAsked(questions: readonly { readonly key: string }[]): WaymarkError {
  const keys = questions.map(({ key }) => key).join(', ');
  return failedPrecondition(
    questions.length === 0
      ? 'The task does not wait for an answer; it may have been answered already.'
      : `The task waits for the answers to all of: ${keys}.`,
  );
}

async function detailsOf(request: McpRequest, task: Task): Promise<Fields> {
  const { agent, tip } = task;
  if (isInterrupted(tip)) {
    const questions = await questionsOf(agent, tip.snapshotId, tip.interrupts);
    return { inputRequests: toInputRequests(questions) };
  }
  if (statusOf(task) === 'completed') {
    const result = toolResult(agent, await outputOf(task), { links: true });
    return { result: inEra(request, result) };
  }
  if (tip.status !== 'failed') return {};
  const { status = 'UNKNOWN', message = 'The turn failed.' } = tip.error ?? {};
  return { error: { code: codes.refused, message, data: { status } } };
}

/** A background run as a task. Its id names the run. */
interface Task extends OpenCall, Chain {
  readonly taskId: string;
}

/** Finds a task of this caller; that of another owner is unknown. */
async function openTask(
  { c, offered }: McpRequest,
  taskId: string,
  operation: Operation,
): Promise<Task> {
  const [, name, snapshotId = ''] = /^(.+):([^:]+)$/s.exec(taskId) ?? [];
  const agent = [...offered().values()].find((each) => each.name === name);
  if (!agent || !isSnapshotId(snapshotId)) throw unknownTask(taskId);
  const open = await openAgentCall(c, { agent, operation, snapshotId });
  const chain = await readChain(agent, snapshotId, open.options);
  if (!chain) throw unknownTask(taskId);
  return { ...open, ...chain, taskId };
}

async function outputOf({ agent, tip }: Task): Promise<Output> {
  const output = outputOfSnapshot(tip);
  if (tip.status === 'aborted') return { ...output, snapshotId: tip.snapshotId };
  const value = await outputIn(agent, output.message);
  return value === undefined ? output : { ...output, output: value };
}

function statusOf(task: Task): string {
  const state = stateOfChain(task);
  return state === 'waiting' ? 'input_required' : state;
}

/** Milliseconds after which a client may ask again. */
const pollMs = 1000;

function describeTask(task: Task, era: 'modern' | 'legacy'): Fields {
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

function unknownTask(taskId: string): RpcError {
  return new RpcError(codes.invalidParams, `There is no task ${short(taskId)} here.`);
}

const relatedTaskKey = 'io.modelcontextprotocol/related-task';
/** Milliseconds between two looks at a run whose worker has died. */
const takeoverMs = 1000;

/** `tasks/result` of the 2025-11-25 revision: waits for the end of a task, and asks the user on the way. */
export async function answerTaskResult(request: McpRequest): Promise<Response> {
  const { taskId } = parseShape(taskParams, request.params, 'request');
  await openTask(request, taskId, 'watch');
  return await streamAnswer(request, (io) => resultOf(request, taskId, io));
}

async function* resultOf(request: McpRequest, taskId: string, io: StreamIo): Messages {
  for (;;) {
    const task = await openTask(request, taskId, 'watch');
    const { agent, tip, options } = task;
    if (tip.status === 'pending') {
      await agent.wait(tip.snapshotId, { ...options, signal: io.reader });
    } else if (tip.status === 'expired') {
      await raceSignal(request.c.get('server').clock.sleep(takeoverMs), io.reader);
    } else if (!isInterrupted(tip)) {
      const result = toolResult(agent, await outputOf(task), { links: true });
      return { ...result, _meta: { [relatedTaskKey]: { taskId } } };
    } else if (!(yield* answered(request, task, io))) {
      return { ...waitingResult(tip, tip.interrupts), _meta: { [relatedTaskKey]: { taskId } } };
    }
  }
}

async function* answered(
  request: McpRequest,
  task: Task,
  io: StreamIo,
): AsyncGenerator<readonly Fields[], boolean> {
  if (!canAsk(request, io)) return false;
  const { agent, tip } = task;
  const questions = await questionsOf(agent, tip.snapshotId, tip.interrupts);
  const answers = yield* askUser(request, questions, io);
  if (!answers) return false;
  await continueChain(request.c, task, { resume: toResume(answers) });
  return true;
}
