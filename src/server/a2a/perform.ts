import type { Agent } from '../../agent/spec/agent.ts';
import { parseShape } from '../../protocol/parse.ts';
import { headerOf } from '../http/connection.ts';
import { logFault } from '../http/log.ts';
import { findAgent, type RequestContext } from '../http/server-context.ts';
import { acquireStreamSlot, type StreamFormat } from '../stream/stream-response.ts';
import type { A2aRequest, A2aServer } from './a2a-server.ts';
import { A2aError, codes, type Fields, toA2aError } from './errors.ts';
import { methods } from './methods.ts';
import { offeredAgents } from './offered-agents.ts';
import { sendMessage } from './send.ts';
import { taskParams } from './shapes.ts';
import { taskEvents } from './stream.ts';
import { isTerminal, type OpenTask, openTask, stateOf, type TaskView } from './task.ts';

/** A task to be followed. */
interface Followed {
  readonly task: OpenTask;
  readonly view: TaskView;
}

/** The offered agent that the path names. */
export function agentOf(
  { serverContext, options }: A2aServer,
  c: RequestContext,
  method: string,
): Agent {
  const agents = offeredAgents(serverContext.app, options);
  const agent = findAgent({ agents: () => agents }, c.req.param('agent') ?? '');
  Object.assign(c.get('logged'), { agent: agent.name, rpc: method.slice(0, 64) });
  return agent;
}

/** Refuses a body that is not said to be JSON, as a form of a web page could send it. */
export function checkMediaType(c: RequestContext): void {
  const type = headerOf(c, 'content-type')?.split(';', 1)[0]?.trim().toLowerCase();
  if (type === 'application/json' || type === 'application/a2a+json') return;
  const message = 'Expected the content type application/json.';
  throw new A2aError(codes.invalidRequest, message, { httpStatus: 415 });
}

/** What a request of any binding comes to: a result in the shape of 1.0, or a task to be followed. */
export async function perform(
  server: A2aServer,
  request: A2aRequest,
): Promise<{ readonly result: Fields } | Followed> {
  const { method, version } = request;
  if (method === 'SendStreamingMessage') {
    const { task, configuration } = await sendMessage(server, request);
    return { task, view: { historyLength: configuration.historyLength } };
  }
  if (method === 'SubscribeToTask') {
    const params = parseShape(taskParams, request.params, 'request');
    const task = await openTask(server, request, params.id, 'watch');
    if (version === '1.0' && isTerminal(stateOf(task))) {
      const message = 'The task has ended. Read it with GetTask.';
      throw new A2aError(codes.unsupported, message);
    }
    return { task, view: {} };
  }
  const handle = Object.hasOwn(methods, method) ? methods[method] : undefined;
  if (!handle) {
    const name = JSON.stringify(method.slice(0, 64));
    throw new A2aError(codes.methodNotFound, `There is no method ${name}.`);
  }
  return { result: await handle(server, request) };
}

/** How a binding writes the events of a stream. */
interface EventShape {
  event(event: Fields): Fields;
  error(error: A2aError): Fields;
}

/** Streams what becomes of a task. */
export function streamTask(
  { serverContext }: A2aServer,
  { c, headers }: A2aRequest,
  { task, view }: Followed,
  format: StreamFormat<Fields>,
  shape: EventShape,
): Response {
  const slot = acquireStreamSlot(serverContext, c);
  const events = taskEvents(task, { ...task.options, signal: slot.signal }, view);
  const onFault = (error: unknown): void => logFault(serverContext, error, c.get('logged'));
  return slot.respond(shaped(events, shape, onFault), {
    ...format,
    headers: { ...format.headers, ...headers },
  });
}

async function* shaped(
  events: AsyncGenerator<readonly Fields[]>,
  shape: EventShape,
  onFault: (error: unknown) => void,
): AsyncGenerator<readonly Fields[]> {
  try {
    for await (const batch of events) yield batch.map((event) => shape.event(event));
  } catch (error) {
    if (!(error instanceof A2aError)) onFault(error);
    yield [shape.error(toA2aError(error))];
  }
}
