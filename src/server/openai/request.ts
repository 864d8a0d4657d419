import { type InterruptAnswer, interruptsAtEnd, toResume } from '../../api/interrupts.ts';
import type { ToolInfo } from '../../protocol/requests.ts';
import type { Init, Input } from '../../protocol/turn.ts';
import { short } from '../http/errors.ts';
import { toolsOf } from '../http/question.ts';
import type { OpenCall, RequestContext } from '../http/server-context.ts';
import { requestIdOf } from '../stream/turn.ts';
import { toAnswers } from './answers.ts';
import { badRequest } from './errors.ts';
import { type ReadInput, readInput } from './input.ts';
import { hasStore, type OpenAiServer } from './openai-server.ts';
import { checkAllowed, checkParameters } from './parameters.ts';
import { type RequestEcho, requestMetadata, type StoredRequest } from './response.ts';
import { settingsOf } from './settings.ts';
import type { CreateRequest } from './shapes.ts';
import { findStart, type Start } from './start.ts';
import { callerToolsOf } from './tools.ts';

/** A turn as a request asks for it. */
export interface TurnRequest extends OpenCall {
  readonly init: Init;
  readonly input: Input;
  readonly echo: RequestEcho;
  /** Whether the client holds the state. */
  readonly isHeld: boolean;
}

/** Reads a request, asks whether its caller may make it, and finds where the turn starts. */
export async function openRequest(
  openai: OpenAiServer,
  c: RequestContext,
  body: CreateRequest,
): Promise<TurnRequest> {
  checkParameters(body, openai.options);
  if (typeof body.model !== 'string') {
    throw badRequest('Say which agent is to answer: GET /openai/v1/models lists them.', {
      param: 'model',
      code: 'missing_parameter',
    });
  }
  const agent = openai.agent(body.model);
  const read = readInput(body.input ?? '');
  checkInput(openai, read);
  const isHeld = body.store === false || !hasStore(agent);
  const start = await findStart(openai, c, { agent, body, read, isHeld });
  // Asking for them may ask MCP servers.
  const { tool_choice: choice } = body;
  const isNamed = typeof choice === 'object' && choice !== null;
  const needsTools = (body.tools ?? []).length > 0 || read.outputs.length > 0 || isNamed;
  const own = needsTools ? await toolsOf(agent) : [];
  const given = callerToolsOf(body.tools ?? [], own);
  if (isNamed) checkToolChoice(choice.name, [...own, ...given]);
  // A model that must not call tools is not told about those of the caller.
  const tools = choice === 'none' ? [] : given;
  const settings = await settingsOf(agent, body, read);
  const echo = echoOf(body, start);
  const requestId = requestIdOf(c);
  const common = {
    ...(tools.length > 0 && { tools: [...tools] }),
    ...(settings && { settings }),
    ...(requestId !== undefined && { requestId }),
  };
  const { open, init } = start;
  if (read.outputs.length > 0) {
    const resume = toResume(await answersTo(start, read, own));
    return { ...open, init, input: { resume, ...common }, echo, isHeld };
  }
  const message = {
    role: 'user' as const,
    content: [...read.content],
    ...requestMetadata(storedEcho(echo)),
  };
  return { ...open, init, input: { message, ...common }, echo, isHeld };
}

function checkToolChoice(name: string, tools: readonly { readonly name: string }[]): void {
  if (tools.some((tool) => tool.name === name)) return;
  throw badRequest(`tool_choice names ${short(name)}, which is no tool of this request.`, {
    param: 'tool_choice',
    code: 'invalid_value',
  });
}

function checkInput({ options }: OpenAiServer, read: ReadInput): void {
  const { content, outputs, history, instructions } = read;
  if (instructions.length > 0) checkAllowed(options, 'instructions', 'input');
  if (history.length > 0) checkAllowed(options, 'history', 'input');
  if (content.length > 0 && outputs.length > 0) {
    throw badRequest(
      'Send the outputs of function calls alone. A message of the user can follow when they are answered.',
      { param: 'input', code: 'unsupported_value' },
    );
  }
  if (content.length > 0 || outputs.length > 0) return;
  throw badRequest('The input is empty. Send a text, or a message of the user at its end.', {
    param: 'input',
    code: 'missing_parameter',
  });
}

/** The answers to the interrupts that the turn starts from. */
async function answersTo(
  { open, init }: Start,
  { outputs }: ReadInput,
  tools: readonly ToolInfo[],
): Promise<readonly InterruptAnswer[]> {
  const { agent, options } = open;
  const { state, snapshotId, sessionId } = init;
  if (state || (snapshotId === undefined && sessionId === undefined)) {
    const interrupts = interruptsAtEnd(state?.messages ?? []);
    return toAnswers(outputs, { interrupts, snapshotId: undefined, tools });
  }
  const lookup = snapshotId === undefined ? { sessionId: sessionId ?? '' } : { snapshotId };
  const snapshot = await agent.getSnapshot(lookup, options);
  const interrupts = snapshot?.interrupts ?? [];
  return toAnswers(outputs, { interrupts, snapshotId: snapshot?.snapshotId, tools });
}

/** What the response repeats of its request. */
function echoOf(body: CreateRequest, { place }: Start): RequestEcho {
  const { metadata, instructions, temperature, top_p, max_output_tokens, background } = body;
  const { tools, text, tool_choice: toolChoice, reasoning } = body;
  return {
    ...place,
    ...(metadata && { metadata }),
    ...(typeof instructions === 'string' && { instructions }),
    ...(typeof temperature === 'number' && { temperature }),
    ...(typeof top_p === 'number' && { top_p }),
    ...(typeof max_output_tokens === 'number' && { max_output_tokens }),
    ...(background === true && { background }),
    ...(tools && { tools }),
    ...(toolChoice && { tool_choice: toolChoice }),
    ...(reasoning && { reasoning }),
    ...(text && { text: { format: { type: 'text' }, ...text } }),
  };
}

function storedEcho({
  tools: _,
  text: __,
  tool_choice: ___,
  reasoning: ____,
  ...stored
}: RequestEcho): StoredRequest {
  return stored;
}
