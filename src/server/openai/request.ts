import type { Agent } from '../../agent/contract/agent.ts';
import {
  type Interrupt,
  type InterruptAnswer,
  interruptsAtEnd,
  toResume,
} from '../../api/interrupts.ts';
import { defined, type JsonObject, toJson, tryJson } from '../../core/json/json.ts';
import type { ToolInfo } from '../../protocol/requests.ts';
import type { CallerToolInfo, Init, Input } from '../../protocol/turn.ts';
import { short } from '../http/answer.ts';
import { jsonIn } from '../http/body.ts';
import { answerBy, askedBy } from '../http/question.ts';
import { hasStore, toolsOf } from '../http/served-app.ts';
import type { OpenCall } from '../http/server-context.ts';
import { requestIdOf } from '../stream/turn.ts';
import { badRequest } from './errors.ts';
import { type CallOutput, type ReadInput, readInput } from './input.ts';
import { toCallId } from './items.ts';
import type { OpenAiRequest } from './openai-server.ts';
import { type RequestEcho, requestMetadata, type StoredRequest } from './response.ts';
import { checkAllowed, checkParameters, settingsOf } from './settings.ts';
import type { CreateRequest, FunctionTool } from './shapes.ts';
import { findStart, type Start, type StartRequest } from './start.ts';

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
  openai: OpenAiRequest,
  body: CreateRequest,
): Promise<TurnRequest> {
  checkParameters(body, openai.options);
  const agent = agentOf(openai, body.model);
  const read = readInput(body.input ?? '');
  checkInput(openai, read);
  const isHeld = body.store === false || !hasStore(agent);
  const start = await findStart(openai, { agent, body, read, isHeld });
  return await openTurn(openai, { agent, body, read, isHeld }, start);
}

export function agentOf(openai: OpenAiRequest, model: string | null | undefined): Agent {
  if (typeof model === 'string') return openai.agent(model);
  throw badRequest('Say which agent is to answer: GET /openai/v1/models lists them.', {
    param: 'model',
    code: 'missing_parameter',
  });
}

/** The turn of a request whose start is known. */
export async function openTurn(
  openai: OpenAiRequest,
  { agent, body, read, isHeld }: StartRequest,
  start: Start,
): Promise<TurnRequest> {
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
  const stored = { ...start.place, ...givenIn(body, storedFields) } as StoredRequest;
  const text = body.text && { text: { format: { type: 'text' }, ...body.text } };
  // A function has all its fields in the response.
  const echoed = { tools: body.tools?.map((tool) => ({ ...unsaid, ...tool })) ?? [] };
  const rest = givenIn(body, ['tool_choice', 'reasoning']);
  const echo = { ...stored, ...rest, ...echoed, ...text, ...(isHeld && { store: false }) };
  const requestId = requestIdOf(openai.c);
  const common = defined({ tools: tools.length > 0 ? [...tools] : undefined, settings, requestId });
  const { open, init } = start;
  if (read.outputs.length > 0) {
    const resume = toResume(await answersTo(start, read, own));
    return { ...open, init, input: { resume, ...common }, echo, isHeld };
  }
  const metadata = requestMetadata(stored);
  const message = { role: 'user' as const, content: [...read.content], ...defined({ metadata }) };
  return { ...open, init, input: { message, ...common }, echo, isHeld };
}

function checkToolChoice(name: string, tools: readonly { readonly name: string }[]): void {
  if (tools.some((tool) => tool.name === name)) return;
  throw badRequest(`tool_choice names ${short(name)}, which is no tool of this request.`, {
    param: 'tool_choice',
    code: 'invalid_value',
  });
}

export function checkInput(
  { options }: OpenAiRequest,
  { content, outputs, history, instructions }: ReadInput,
  param: 'input' | 'messages' = 'input',
): void {
  if (instructions.length > 0) checkAllowed(options, 'instructions', param);
  if (history.length > 0) checkAllowed(options, 'history', param);
  if (content.length > 0 && outputs.length > 0) {
    throw badRequest(
      'Send the outputs of function calls alone. A message of the user can follow when they are answered.',
      { param, code: 'unsupported_value' },
    );
  }
  if (content.length > 0 || outputs.length > 0) return;
  throw badRequest(`The ${param} field has nothing new. End it with a message of the user.`, {
    param,
    code: 'missing_parameter',
  });
}

/** The answers to the interrupts that the turn starts from. */
async function answersTo(
  { open, init }: Start,
  { outputs }: ReadInput,
  tools: readonly ToolInfo[],
): Promise<readonly InterruptAnswer[]> {
  const { state, snapshotId, sessionId } = init;
  const lookup = snapshotId === undefined ? { sessionId: sessionId ?? '' } : { snapshotId };
  const isHeld = state !== undefined || (snapshotId === undefined && sessionId === undefined);
  const waiting = isHeld ? undefined : await open.agent.getSnapshot(lookup, open.options);
  const interrupts = isHeld ? interruptsAtEnd(state?.messages ?? []) : (waiting?.interrupts ?? []);
  return outputs.map((given) => {
    const interrupt = interrupts.find(
      (each) => toCallId(waiting?.snapshotId, each) === given.callId,
    );
    if (!interrupt) throw notAsked(given.callId);
    const tool = tools.find(({ name }) => name === interrupt.toolName);
    return answerTo(interrupt, tool, given);
  });
}

const unsaid = { description: null, parameters: null, strict: null };

const storedFields = [
  'metadata',
  'instructions',
  'temperature',
  'top_p',
  'max_output_tokens',
  'background',
] as const;

/** The fields of the request that the response repeats. */
function givenIn(body: CreateRequest, names: readonly (keyof CreateRequest)[]): object {
  const given = names.filter(
    (name) => body[name] !== false && (body[name] ?? undefined) !== undefined,
  );
  return Object.fromEntries(given.map((name) => [name, body[name]]));
}

function answerTo(
  interrupt: Interrupt,
  tool: ToolInfo | undefined,
  { callId, output }: CallOutput,
): InterruptAnswer {
  // A tool of the caller.
  if (tool === undefined) return interrupt.respond(output);
  const { kind, schema } = askedBy(interrupt, tool);
  const isText = kind === 'output' && schema === undefined;
  const answer = answerBy(interrupt, tool, isText ? output : (tryJson(jsonIn(output)) ?? output));
  if (answer) return answer;
  throw badRequest(
    `The tool ${short(interrupt.toolName)} runs on the server and waits for your approval. Answer ${short(callId)} with the output {"approved":true}, or {"approved":false,"reason":"…"}.`,
    { param: 'input', code: 'invalid_function_call_output' },
  );
}

function notAsked(callId: string): Error {
  return badRequest(
    `No function call ${short(callId)} waits for an output: it has its output already, or belongs to another response. Continue from the response that called the function.`,
    { param: 'input', code: 'no_tool_call_found' },
  );
}

/**
 * The functions of a request as tools that the caller executes. One with the name of a tool of the agent is left out: the
 * agent's own counts, and the caller needs the function to answer when that tool waits for an approval.
 */
function callerToolsOf(
  given: readonly FunctionTool[],
  own: readonly ToolInfo[],
): readonly CallerToolInfo[] {
  return given.flatMap(({ type, name, description, parameters }, at) => {
    if (type !== 'function' || name === undefined) {
      throw badRequest(
        `Only functions with a name can be sent as tools, not ${short(type)}. Tools that run on the server belong to the agent's definition.`,
        { param: `tools[${at}]`, code: 'unsupported_value' },
      );
    }
    if (own.some((tool) => tool.name === name)) return [];
    const schema = parameters ?? { type: 'object', properties: {} };
    const inputSchema = toJson(schema, 'parameters') as JsonObject;
    return [{ name, ...defined({ description: description ?? undefined }), inputSchema }];
  });
}
