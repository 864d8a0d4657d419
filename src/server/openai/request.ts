import {
  type Interrupt,
  type InterruptAnswer,
  interruptsAtEnd,
  toResume,
} from '../../api/interrupts.ts';
import { isJsonObject, type Json, type JsonObject, toJson } from '../../core/json/json.ts';
import type { ToolInfo } from '../../protocol/requests.ts';
import type { CallerToolInfo, Init, Input } from '../../protocol/turn.ts';
import { short } from '../http/errors.ts';
import { decideApproval, toolsOf } from '../http/question.ts';
import type { OpenCall, RequestContext } from '../http/server-context.ts';
import { requestIdOf } from '../stream/turn.ts';
import { badRequest } from './errors.ts';
import { toCallId } from './ids.ts';
import { type CallOutput, type ReadInput, readInput } from './input.ts';
import { hasStore, type OpenAiServer } from './openai-server.ts';
import { type RequestEcho, requestMetadata, type StoredRequest } from './response.ts';
import { checkAllowed, checkParameters, settingsOf } from './settings.ts';
import type { CreateRequest, FunctionTool } from './shapes.ts';
import { findStart, type Start } from './start.ts';

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

/** The fields of the request that the response repeats. */
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

/** The interrupts that a client answers, and how. */
interface AskedCalls {
  readonly interrupts: readonly Interrupt[];
  /** The snapshot that waits; absent where the client holds the state. */
  readonly snapshotId: string | undefined;
  /** The tools of the agent. */
  readonly tools: readonly ToolInfo[];
}

/** The outputs of function calls as answers to interrupts. */
function toAnswers(
  outputs: readonly CallOutput[],
  { interrupts, snapshotId, tools }: AskedCalls,
): readonly InterruptAnswer[] {
  return outputs.map((given) => {
    const interrupt = interrupts.find((each) => toCallId(snapshotId, each) === given.callId);
    if (!interrupt) throw notAsked(given.callId);
    const tool = tools.find(({ name }) => name === interrupt.toolName);
    return answerTo(interrupt, tool, given);
  });
}

function answerTo(
  interrupt: Interrupt,
  tool: ToolInfo | undefined,
  { callId, output }: CallOutput,
): InterruptAnswer {
  // A tool of the caller, or one that only ever asks.
  if (tool === undefined || tool.interrupt === true) {
    return interrupt.respond(tool?.outputSchema ? parsed(output) : output);
  }
  const { metadata } = interrupt;
  const value = parsed(output);
  // The tool waits for data.
  if (isJsonObject(metadata) && isJsonObject(metadata.schema)) {
    return interrupt.approve({ resumed: value });
  }
  const decided = decideApproval(interrupt, value);
  if (decided) return decided;
  throw badRequest(
    `The tool ${short(interrupt.toolName)} runs on the server and waits for your approval. Answer ${short(callId)} with the output {"approved":true}, or {"approved":false,"reason":"…"}.`,
    { param: 'input', code: 'invalid_function_call_output' },
  );
}

/** JSON where the text is JSON, else the text. */
function parsed(text: string): Json {
  try {
    return toJson(JSON.parse(text), 'The output of a function call');
  } catch {
    return text;
  }
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
    return [
      {
        name,
        ...(typeof description === 'string' && { description }),
        inputSchema: toJson(schema, 'parameters') as JsonObject,
      },
    ];
  });
}
