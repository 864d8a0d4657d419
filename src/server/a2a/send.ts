import * as v from 'valibot';
import { internalsOf } from '../../agent/define/create-agent.ts';
import { requestKey } from '../../agent/turn/inputs.ts';
import { type InterruptAnswer, toResume } from '../../api/interrupts.ts';
import { invalid, type WaymarkError } from '../../core/error.ts';
import { isJsonObject, type Json, type JsonObject } from '../../core/json/json.ts';
import { sha256Hex } from '../../core/platform.ts';
import { scopeOf } from '../../protocol/ids.ts';
import { parseShape } from '../../protocol/parse.ts';
import type { Init, Input } from '../../protocol/turn.ts';
import { ownerOf } from '../http/auth.ts';
import { jsonIn } from '../http/body.ts';
import type { RpcError } from '../http/json-rpc.ts';
import { type Question, questionsOf } from '../http/question.ts';
import { openAgentCall } from '../http/server-context.ts';
import { continueChain, startChain } from '../stream/turn-chain.ts';
import type { A2aRequest, A2aServer } from './a2a-server.ts';
import { a2aError, codes } from './errors.ts';
import type { PushFeed } from './push-feed.ts';
import { type A2aMessage, type A2aPart, fromPart, type SendParams, sendParams } from './shapes.ts';
import { type OpenTask, openTask, readTask, stateOf, type Task } from './task.ts';

interface SentMessage {
  readonly task: OpenTask;
  readonly configuration: NonNullable<SendParams['configuration']>;
}

/** Starts the turn of a message in the background, or gives its answer to the task that it names. */
export async function sendMessage(request: A2aRequest): Promise<SentMessage> {
  const { message, configuration } = parseShape(sendParams, request.params, 'request');
  const push = configuration?.taskPushNotificationConfig;
  if (push) await checkPush(request, push.url);
  const task =
    message.taskId === undefined
      ? await startTask(request, message)
      : await continueTask(request, { ...message, taskId: message.taskId });
  const { snapshotId: taskId } = task.root;
  if (push) await request.push?.set(task, { ...push, taskId }, request.version);
  if (message.taskId !== undefined) await request.push?.continue(task);
  return { task, configuration: configuration ?? {} };
}

/** The push notifications of this server, if it sends any. */
export function pushOf({ push }: A2aServer): PushFeed {
  if (push) return push;
  throw a2aError(codes.pushNotSupported, 'This server sends no push notifications.');
}

/** Refuses a push notification that cannot be sent. */
export async function checkPush(request: A2aRequest, url: string): Promise<void> {
  await pushOf(request).check(url, request.c.get('caller'));
  giveSecret(request, url);
}

/** Gives the response the secret of a receiver, in a header: clients refuse unknown fields. */
export function giveSecret(request: A2aRequest, url: string): void {
  request.headers['webhook-secret'] = pushOf(request).secretFor(url, request.c.get('caller'));
}

async function startTask({ agent, c }: A2aRequest, message: A2aMessage): Promise<OpenTask> {
  const { contextId } = message;
  const open = await openAgentCall(c, { agent, operation: 'runTurn', sessionId: contextId });
  const init: Init = contextId === undefined ? {} : { sessionId: contextId };
  const input: Input = {
    message: {
      role: 'user',
      content: message.parts.map(fromPart),
      metadata: { a2aMessageId: message.messageId },
    },
    requestId: requestIdOf(message, contextId),
  };
  return { ...open, ...(await startChain(c, open, init, input)) };
}

async function continueTask(
  request: A2aRequest,
  message: A2aMessage & { readonly taskId: string },
): Promise<OpenTask> {
  const { taskId, contextId, parts } = message;
  const task = await openTask(request, taskId, 'runTurn');
  const { agent, root, options } = task;
  if (contextId !== undefined && contextId !== root.sessionId) {
    throw invalid('The task belongs to another context.');
  }
  const requestId = requestIdOf(message, taskId);
  if (stateOf(task) === 'TASK_STATE_INPUT_REQUIRED') {
    const resume = toResume(await answersIn(task, parts));
    await continueChain(request.c, task, { resume, requestId });
  } else if (!(await isKnown(task, requestId))) throw notWaiting(task);
  const continued = await readTask(agent, root.snapshotId, options);
  return { ...task, ...continued };
}

/** Whether the answer has been given already: its client did not hear of it, and sends it again. */
async function isKnown({ agent, caller, tip }: OpenTask, requestId: string): Promise<boolean> {
  const { spec } = internalsOf(agent);
  const key = requestKey(scopeOf(spec, ownerOf(caller).owner), requestId);
  return (await spec.store?.runs?.getRequest(key))?.runId === tip.snapshotId;
}

function notWaiting(task: OpenTask): RpcError {
  const { root } = task;
  return a2aError(
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

const byKey = v.object({ answers: v.record(v.string(), v.unknown()) });

/**
 * The answers of a message to the questions of a task. The answer to a single question is text, or data that fits its schema;
 * several are answered by `{ answers: { [key]: data } }`. `null` declines.
 */
async function answersIn(
  { agent, tip }: Task,
  parts: readonly A2aPart[],
): Promise<readonly InterruptAnswer[]> {
  const questions = await questionsOf(agent, tip.snapshotId, tip.interrupts);
  const data = parts.find((part) => part.data !== undefined)?.data;
  const keyed = v.safeParse(byKey, data);
  const answers = questions.map((question) => {
    if (keyed.success) {
      const { answers: all } = keyed.output;
      return Object.hasOwn(all, question.key)
        ? fromData(question, all[question.key] as Json)
        : undefined;
    }
    if (questions.length > 1) return undefined;
    if (data !== undefined) return fromData(question, data as Json);
    const said = parts.map(({ text }) => text ?? '').join('');
    return fromText(question, said.trim());
  });
  const given = answers.filter((answer) => answer !== undefined);
  if (given.length === questions.length && given.length > 0) return given;
  throw notAnAnswer(questions);
}

function fromData({ form, accept, decline }: Question, data: Json): InterruptAnswer | undefined {
  if (data === null) return decline();
  if (!isJsonObject(data)) return undefined;
  const { required } = form.schema;
  const needed = Array.isArray(required) ? required : [];
  if (needed.some((name) => !Object.hasOwn(data, String(name)))) return undefined;
  const value = form.read(data);
  return value === undefined ? undefined : accept(value);
}

// Only a clear yes is a yes.
const yes = /^(yes|y|ok|okay|approve|approved|allow|true)[.!]?$/i;
const no = /^(no|n|decline|declined|deny|denied|reject|rejected|false)\b[.,:!]?\s*(.*)$/is;

function fromText(question: Question, text: string): InterruptAnswer | undefined {
  if (text === '') return undefined;
  const { properties } = question.form.schema;
  const fields = isJsonObject(properties) ? properties : {};
  if ('approved' in fields) {
    if (yes.test(text)) return fromData(question, { approved: true });
    const [, , reason = ''] = no.exec(text) ?? [];
    return no.test(text) ? question.decline(reason || undefined) : undefined;
  }
  const [only, ...others] = Object.entries(fields);
  const [name, field] = only ?? [];
  if (name !== undefined && others.length === 0 && isJsonObject(field) && field.type === 'string') {
    return fromData(question, { [name]: text });
  }
  const parsed = jsonIn(text);
  if (parsed === undefined) return undefined;
  if (isJsonObject(parsed)) return fromData(question, parsed);
  return name !== undefined && others.length === 0
    ? fromData(question, { [name]: parsed } satisfies JsonObject)
    : undefined;
}

function notAnAnswer(questions: readonly Question[]): WaymarkError {
  const keys = questions.map(({ key }) => key).join(', ');
  return invalid(
    questions.length === 1
      ? 'The message does not answer the question of the task. Send a data part that fits the schema of the question, or null to decline.'
      : `The task waits for several answers. Send one data part { "answers": { key: data } } with all of: ${keys}.`,
  );
}
