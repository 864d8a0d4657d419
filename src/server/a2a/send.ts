import { internalsOf } from '../../agent/define/create-agent.ts';
import { fullStore, scopeOf } from '../../agent/spec/spec.ts';
import { requestKey } from '../../agent/turn/inputs.ts';
import { toResume } from '../../api/interrupts.ts';
import { WaymarkError } from '../../core/error.ts';
import { sha256Hex } from '../../core/platform.ts';
import { parseShape } from '../../protocol/parse.ts';
import type { Init, Input } from '../../protocol/turn.ts';
import { ownerOf } from '../http/auth.ts';
import { openAgentCall } from '../http/server-context.ts';
import { startRun } from '../stream/turn.ts';
import type { A2aRequest, A2aServer } from './a2a-server.ts';
import { answersIn } from './answer.ts';
import { A2aError, codes } from './errors.ts';
import { fromPart } from './parts.ts';
import { type A2aMessage, type SendParams, sendParams } from './shapes.ts';
import { type OpenTask, openTask, readTask, stateOf } from './task.ts';

/** A task that has just been started or continued, and what its client wants to see of it. */
export interface SentMessage {
  readonly task: OpenTask;
  readonly configuration: NonNullable<SendParams['configuration']>;
}

/** Starts the turn of a message in the background, or gives its answer to the task that it names. */
export async function sendMessage(server: A2aServer, request: A2aRequest): Promise<SentMessage> {
  const { message, configuration } = parseShape(sendParams, request.params, 'request');
  const push = configuration?.taskPushNotificationConfig;
  if (push) await checkPush(server, request, push.url);
  const task =
    message.taskId === undefined
      ? await startTask(server, request, message)
      : await continueTask(server, request, { ...message, taskId: message.taskId });
  const { snapshotId: taskId } = task.root;
  if (push) await server.push?.set(task, { ...push, taskId }, request.version);
  if (message.taskId !== undefined) await server.push?.continue(task);
  return { task, configuration: configuration ?? {} };
}

/** Refuses a push notification that cannot be sent. The response has the secret of its receiver in a header: clients refuse unknown fields. */
export async function checkPush(
  { push }: A2aServer,
  { c, headers }: A2aRequest,
  url: string,
): Promise<void> {
  if (!push) throw pushNotSupported();
  const caller = c.get('caller');
  await push.check(url, caller);
  headers['webhook-secret'] = push.secretFor(url, caller);
}

export function pushNotSupported(): A2aError {
  return new A2aError(codes.pushNotSupported, 'This server sends no push notifications.');
}

async function startTask(
  server: A2aServer,
  request: A2aRequest,
  message: A2aMessage,
): Promise<OpenTask> {
  const { agent, c } = request;
  const { contextId } = message;
  const open = await openAgentCall(server.serverContext, c, {
    agent,
    operation: 'runTurn',
    ...(contextId !== undefined && { sessionId: contextId }),
  });
  const init: Init = contextId === undefined ? {} : { sessionId: contextId };
  const input: Input = {
    message: {
      role: 'user',
      content: message.parts.map(fromPart),
      metadata: { a2aMessageId: message.messageId },
    },
    requestId: requestIdOf(message, contextId),
  };
  const { id } = await startRun(server.serverContext, open, init, input);
  const task = await readTask(agent, id, open.options);
  if (!task) throw new WaymarkError('INTERNAL', 'The run that was started is not in the store.');
  return { ...open, ...task };
}

async function continueTask(
  server: A2aServer,
  request: A2aRequest,
  message: A2aMessage & { readonly taskId: string },
): Promise<OpenTask> {
  const { taskId, contextId, parts } = message;
  const task = await openTask(server, request, taskId, 'runTurn');
  const { agent, tip, root, options } = task;
  if (contextId !== undefined && contextId !== root.sessionId) {
    throw new WaymarkError('INVALID_ARGUMENT', 'The task belongs to another context.');
  }
  const requestId = requestIdOf(message, taskId);
  if (stateOf(task) === 'TASK_STATE_INPUT_REQUIRED') {
    const { sessionId, snapshotId } = tip;
    const resume = toResume(await answersIn(task, parts));
    const init = { sessionId, ifHead: snapshotId };
    await startRun(server.serverContext, task, init, { resume, requestId });
  } else if (!(await isKnown(task, requestId))) throw notWaiting(task);
  const continued = await readTask(agent, root.snapshotId, options);
  return { ...task, ...continued };
}

/** Whether the answer has been given already: its client did not hear of it, and sends it again. */
async function isKnown({ agent, caller, tip }: OpenTask, requestId: string): Promise<boolean> {
  const { spec } = internalsOf(agent);
  const key = requestKey(scopeOf(spec, ownerOf(caller).owner), requestId);
  return (await fullStore(spec)?.runs?.getRequest(key))?.runId === tip.snapshotId;
}

function notWaiting(task: OpenTask): A2aError {
  const { root } = task;
  return new A2aError(
    codes.unsupported,
    stateOf(task) === 'TASK_STATE_WORKING'
      ? 'The task is being worked on and takes no messages. Wait until it asks for input, or cancel it.'
      : `The task has ended. To continue the conversation, send a message with contextId ${JSON.stringify(root.sessionId)} and without taskId.`,
  );
}

// A message that is sent again under its id joins the turn that it started.
function requestIdOf({ messageId }: A2aMessage, place: string | undefined): string {
  return `a2a:${sha256Hex(JSON.stringify([place ?? null, messageId]))}`;
}
