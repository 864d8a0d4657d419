import type {
  CallToolRequest,
  CallToolResult,
  InputRequiredResult,
  Tool as McpTool,
  Progress,
} from '@modelcontextprotocol/client';
import { linkSignals } from '../core/async/signal.ts';
import { WaymarkError } from '../core/error.ts';
import type { Json, JsonObject } from '../core/json/json.ts';
import type { ToolContext } from '../generate/tool.ts';
import type { McpConnection, OpenClient } from './connection.ts';
import { toMcpError } from './errors.ts';
import {
  answersOf,
  type Elicitation,
  elicitationOf,
  interruptData,
  type Question,
  questionsOf,
  toElicitResult,
} from './questions.ts';
import { fromToolResult } from './tool-result.ts';

/** What calling the tools of a server needs. */
export interface ToolServer {
  readonly server: string;
  readonly connection: McpConnection;
  readonly timeout: number;
  /** Called when the server does not know a tool that it has listed. */
  onUnknownTool(): void;
}

/** One call of a tool of a server. */
export interface ServerToolCall {
  readonly definition: McpTool;
  readonly about: ToolServer;
  readonly input: JsonObject;
}

type Result = CallToolResult | InputRequiredResult;

// However much progress a server reports.
const longestCallMs = 30 * 60_000;
const progressEveryMs = 100;
// Rounds in which a server only wants its own state back.
const mostRounds = 10;

/** Calls a tool of a server. Progress is the tool's stream; a question of the server interrupts the tool. */
export async function callTool(call: ServerToolCall, context: ToolContext): Promise<Json> {
  const { definition, about } = call;
  const before = elicitationOf(context.interrupted);
  const answers = answersOf(before, context.resumed);
  askNext(about.server, before, answers, context);
  const result = await about.connection.use(context.signal, (open) =>
    open.isLegacy
      ? callLegacy(call, open, answers, context)
      : callModern(call, open, { answers, requestState: before?.requestState }, context),
  );
  const { output, content } = fromToolResult(result, definition.name);
  context.attach(...content);
  return output;
}

/** Interrupts with the next question that a server of 2026 asked together with the one that was answered. */
function askNext(
  server: string,
  before: Partial<Elicitation> | undefined,
  answers: Elicitation['answers'],
  context: ToolContext,
): void {
  const { questions = {}, requestState } = before ?? {};
  const next = Object.entries(questions).find(([key]) => !(key in answers));
  if (next === undefined) return;
  const [asked, question] = next;
  const state = requestState === undefined ? {} : { requestState };
  context.interrupt(interruptData(question, { server, answers, asked, questions, ...state }));
}

async function callModern(
  call: ServerToolCall,
  open: OpenClient,
  before: Pick<Elicitation, 'answers'> & { readonly requestState: string | undefined },
  context: ToolContext,
): Promise<CallToolResult> {
  const { server } = call.about;
  let { requestState } = before;
  let responses = Object.entries(before.answers);
  for (let round = 0; round < mostRounds; round++) {
    const result = await request(call, open, context, {
      ...(responses.length > 0 && {
        inputResponses: Object.fromEntries(
          responses.map(([key, answer]) => [key, toElicitResult(answer)]),
        ),
      }),
      ...(requestState !== undefined && { requestState }),
    });
    if (!isInputRequired(result)) return result;
    requestState = result.requestState;
    responses = [];
    const questions = questionsOf(result, server);
    const state = requestState === undefined ? {} : { requestState };
    askNext(server, { questions, ...state }, {}, context);
  }
  throw new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `MCP server "${server}" gave no result for "${call.definition.name}" in ${mostRounds} rounds.`,
  );
}

async function callLegacy(
  call: ServerToolCall,
  open: OpenClient,
  answers: Elicitation['answers'],
  context: ToolContext,
): Promise<CallToolResult> {
  const { server } = call.about;
  const stop = linkSignals(context.signal);
  let asked: { readonly question: Question; readonly key: string } | undefined;
  const onQuestion = (question: Question, key: string): void => {
    asked = { question, key };
    stop.abort();
  };
  try {
    const { signal } = stop;
    const result = await open.questions.during({ answers, onQuestion }, () =>
      request(call, open, { ...context, signal }, {}),
    );
    // Of 2025: it has no other results.
    return result as CallToolResult;
  } catch (error) {
    if (asked === undefined) throw error;
    const { question, key } = asked as { readonly question: Question; readonly key: string };
    return context.interrupt(interruptData(question, { server, answers, asked: key }));
  } finally {
    stop.release();
  }
}

async function request(
  { definition, about, input }: ServerToolCall,
  { client, ...open }: OpenClient,
  context: ToolContext,
  more: object,
): Promise<Result> {
  const { name } = definition;
  const { signal } = context;
  const params: CallToolRequest['params'] = { name, arguments: input, ...more };
  try {
    return await client.callTool(params, {
      signal,
      timeout: about.timeout,
      resetTimeoutOnProgress: true,
      maxTotalTimeout: longestCallMs,
      onprogress: progressOf(context),
      toolDefinition: definition,
      allowInputRequired: true,
    });
  } catch (error) {
    if (isUnknownTool(error)) about.onUnknownTool();
    const doing = `the call of "${name}"`;
    throw toMcpError(open.endedBy() ?? error, { server: about.server, doing, signal });
  }
}

function isInputRequired(result: Result): result is InputRequiredResult {
  return 'resultType' in result && result.resultType === 'input_required';
}

/** Shows progress to readers, but not more often than they can read it. */
function progressOf(context: ToolContext): (progress: Progress) => void {
  let last = Number.NEGATIVE_INFINITY;
  return ({ progress, total, message }) => {
    const now = performance.now();
    if (now - last < progressEveryMs && progress !== total) return;
    last = now;
    void context.stream({
      progress,
      ...(total !== undefined && { total }),
      ...(message !== undefined && { message }),
    });
  };
}

function isUnknownTool(error: unknown): boolean {
  return (
    typeof error === 'object' &&
    error !== null &&
    'code' in error &&
    (error.code === -32602 || error.code === -32601)
  );
}
