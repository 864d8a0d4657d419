import { toResume } from '../../api/interrupts.ts';
import { raceSignal } from '../../core/async/signal.ts';
import { parseShape } from '../../protocol/parse.ts';
import { isInterrupted } from '../http/turn-chain.ts';
import { startRun } from '../stream/turn.ts';
import { askUser, canAsk } from './ask-user.ts';
import type { Fields } from './errors.ts';
import { waitingResult } from './interrupted.ts';
import type { McpRequest, McpServer } from './mcp-server.ts';
import { questionsOf } from './questions.ts';
import { toolResult } from './result.ts';
import { type Messages, type StreamIo, streamAnswer } from './stream-answer.ts';
import { openTask, outputOf, type Task } from './task.ts';
import { taskParams } from './tasks.ts';

const relatedTaskKey = 'io.modelcontextprotocol/related-task';
/** Milliseconds between two looks at a run whose worker has died. */
const takeoverMs = 1000;

/** `tasks/result` of the 2025-11-25 revision: waits for the end of a task, and asks the user on the way. */
export async function answerTaskResult(mcp: McpServer, request: McpRequest): Promise<Response> {
  const { taskId } = parseShape(taskParams, request.params, 'request');
  await openTask(mcp, request, taskId, 'watch');
  return await streamAnswer(mcp, request, (io) => resultOf(mcp, request, taskId, io));
}

async function* resultOf(
  mcp: McpServer,
  request: McpRequest,
  taskId: string,
  io: StreamIo,
): Messages {
  for (;;) {
    const task = await openTask(mcp, request, taskId, 'watch');
    const { agent, tip, options } = task;
    if (tip.status === 'pending') {
      await agent.wait(tip.snapshotId, { ...options, signal: io.reader });
    } else if (tip.status === 'expired') {
      await raceSignal(mcp.serverContext.clock.sleep(takeoverMs), io.reader);
    } else if (!isInterrupted(tip)) {
      const result = toolResult(agent, await outputOf(task), { links: true });
      return { ...result, _meta: { [relatedTaskKey]: { taskId } } };
    } else if (!(yield* answered(mcp, request, task, io))) {
      return { ...waitingResult(tip, tip.interrupts), _meta: { [relatedTaskKey]: { taskId } } };
    }
  }
}

async function* answered(
  mcp: McpServer,
  request: McpRequest,
  task: Task,
  io: StreamIo,
): AsyncGenerator<readonly Fields[], boolean> {
  if (!canAsk(request, io)) return false;
  const { agent, tip } = task;
  const questions = await questionsOf(agent, tip.snapshotId, tip.interrupts);
  const answers = yield* askUser(mcp, request, questions, io);
  if (!answers) return false;
  const init = { sessionId: tip.sessionId, ifHead: tip.snapshotId };
  await startRun(mcp.serverContext, task, init, { resume: toResume(answers) });
  return true;
}
