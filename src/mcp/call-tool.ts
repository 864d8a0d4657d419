import type {
  CallToolRequest,
  CallToolResult,
  InputRequiredResult,
  Progress,
} from '@modelcontextprotocol/client';
import { linkSignals } from '../core/async/signal.ts';
import { messageOf, WaymarkError } from '../core/error.ts';
import { defined, type Json, type JsonObject } from '../core/json/json.ts';
import { parse } from '../core/schema/schema.ts';
import { after, type Clock } from '../core/time.ts';
import { injectTrace, setActiveAttributes } from '../core/trace.ts';
import { mcpNames } from '../core/trace-names.ts';
import type { ToolContext } from '../generate/tool/tool-context.ts';
import type { OpenClient } from './connection.ts';
import { fromToolResult } from './content.ts';
import { taskOf } from './incoming.ts';
import {
  answersOf,
  type Elicitation,
  elicitationOf,
  interruptData,
  type Question,
  questionsOf,
  toElicitResult,
} from './questions.ts';
import { FollowedTask, isLegacyTask, mayBeTask, type ServerToolCall } from './tasks.ts';

type Result = CallToolResult | InputRequiredResult;

// However much progress a server reports.
const maxCallMs = 30 * 60_000;
// Rounds in which a server only wants its own state back.
const maxRounds = 10;

/** The answer of a server to a call, or the task that it has started. As JSON: it is stored with the run. */
type Begun = { readonly result: CallToolResult } | { readonly taskId: string };

/**
 * Calls a tool of a server. Progress is the tool's stream; a question of the server interrupts the tool. The id of a task is
 * stored with the run, so that a process which takes over the turn asks for its state instead of calling the tool again.
 */
export async function callTool(call: ServerToolCall, context: ToolContext): Promise<Json> {
  const { about } = call;
  const before = elicitationOf(context.interrupted);
  const answers = answersOf(context.interrupted, context.resumed);
  askNext(about.server, before, answers, context);
  let task: FollowedTask | undefined;
  const begin = async (): Promise<Begun> => {
    const begun = await beginCall(call, { ...before, answers }, context);
    if ('taskId' in begun) task = new FollowedTask(call, begun.taskId, context);
    return begun;
  };
  try {
    const begun = mayBeTask(call) ? await context.checkpoint('mcp', begin) : await begin();
    if ('result' in begun) return await outputOf(call, begun.result, context);
    task = new FollowedTask(call, begun.taskId, context);
    return await outputOf(call, await endOfTask(call, task, answers, context), context);
  } catch (error) {
    // Also if the turn was stopped while the task was started, and its id could not be stored any more.
    await task?.cancelAfter(error);
    throw error;
  }
}

async function outputOf(
  call: ServerToolCall,
  result: CallToolResult,
  context: ToolContext,
): Promise<Json> {
  await checkOutput(call, result);
  const { output, content } = fromToolResult(result, call.definition.name);
  context.attach(...content);
  return output;
}

async function checkOutput(
  { definition, outputSchema, about }: ServerToolCall,
  result: CallToolResult,
): Promise<void> {
  if (outputSchema === undefined || result.isError === true) return;
  try {
    await parse(outputSchema, result.structuredContent, 'The structured content');
  } catch (error) {
    throw new WaymarkError(
      'INTERNAL',
      `MCP server "${about.server}" answered the call to "${definition.name}" with a result that does not fit its output schema: ${messageOf(error)}`,
    );
  }
}

/** The remains of an earlier call: the answers to its questions, the state of the server, and its task. */
type Before = Pick<Elicitation, 'answers' | 'requestState' | 'taskId'>;

async function beginCall(
  call: ServerToolCall,
  before: Before,
  context: ToolContext,
): Promise<Begun> {
  const { taskId, answers } = before;
  if (taskId !== undefined) {
    await new FollowedTask(call, taskId, context).answer(toResponses(answers));
    return { taskId };
  }
  const result = await call.about.connection.use(context.signal, (open) =>
    open.isLegacy
      ? asking(call, open, answers, context, (signal) =>
          request(call, open, { ...context, signal }, isLegacyTask(call) ? { task: {} } : {}),
        )
      : callModern(call, open, before, context),
  );
  const started = taskOf(result);
  // A result of 2025, or one that is not `input_required`: there are no others.
  return started === undefined ? { result: result as CallToolResult } : { taskId: started };
}

/** Waits for the end of a task; a question of it interrupts the tool. */
async function endOfTask(
  call: ServerToolCall,
  task: FollowedTask,
  answers: Elicitation['answers'],
  context: ToolContext,
): Promise<CallToolResult> {
  const { server, connection } = call.about;
  const state = await task.settled();
  const isLegacy = await connection.withClient(context.signal, async (open) => open.isLegacy);
  if (!isLegacy) {
    if (state.status !== 'input_required') return task.resultOf(state);
    const { taskId } = task;
    const questions = questionsOf(task.questionsIn(state), server);
    askNext(server, { questions, taskId }, {}, context);
    throw task.invalid(': it asks, but has no question');
  }
  return await connection.use(context.signal, (open) =>
    asking(
      call,
      open,
      answers,
      context,
      (signal) => task.result(open, signal),
      () => task.cancel(),
    ),
  );
}

/** Interrupts with the next question that a server of 2026 asked together with the one that was answered. */
function askNext(
  server: string,
  before: Partial<Elicitation> | undefined,
  answers: Elicitation['answers'],
  context: ToolContext,
): void {
  const { questions = {}, requestState, taskId } = before ?? {};
  const next = Object.entries(questions).find(([key]) => !(key in answers));
  if (next === undefined) return;
  const [asked, question] = next;
  const state = defined({ requestState, taskId });
  context.interrupt(interruptData(question, { server, answers, asked, questions, ...state }));
}

async function callModern(
  call: ServerToolCall,
  open: OpenClient,
  before: Before,
  context: ToolContext,
): Promise<CallToolResult> {
  const { server } = call.about;
  let { requestState, answers } = before;
  for (let round = 0; round < maxRounds; round++) {
    const inputResponses = Object.keys(answers).length > 0 ? toResponses(answers) : undefined;
    const result = await request(call, open, context, defined({ inputResponses, requestState }));
    if (!isInputRequired(result)) return result;
    requestState = result.requestState;
    answers = {};
    const questions = questionsOf(result, server);
    askNext(server, { questions, ...defined({ requestState }) }, {}, context);
  }
  throw new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `MCP server "${server}" gave no result for "${call.definition.name}" in ${maxRounds} rounds.`,
  );
}

function toResponses(answers: Elicitation['answers']): JsonObject {
  return Object.fromEntries(
    Object.entries(answers).map(([key, answer]) => [key, toElicitResult(answer) as JsonObject]),
  );
}

/**
 * Does something during which a server of 2025 may ask. A question that has no answer yet interrupts the tool, which is called
 * again with the answer.
 */
async function asking<Value>(
  { about: { server } }: ServerToolCall,
  open: OpenClient,
  answers: Elicitation['answers'],
  context: ToolContext,
  send: (signal: AbortSignal) => Promise<Value>,
  leave: () => Promise<void> = async () => {},
): Promise<Value> {
  const stop = linkSignals(context.signal);
  let asked: Json | undefined;
  const onQuestion = (question: Question, key: string): void => {
    asked = interruptData(question, { server, answers, asked: key });
    stop.abort();
  };
  try {
    return await open.questions.during({ answers, onQuestion }, () => send(stop.signal));
  } catch (error) {
    if (asked === undefined) throw error;
    await leave();
    return context.interrupt(asked);
  } finally {
    stop.release();
  }
}

async function request(
  { definition, about, input }: ServerToolCall,
  open: OpenClient,
  context: ToolContext,
  more: object,
): Promise<Result> {
  const { outputSchema: _, ...withoutOutput } = definition;
  const { name } = definition;
  const { signal } = context;
  const trace: Record<string, string> = {};
  injectTrace(trace);
  setActiveAttributes({ [mcpNames.method]: 'tools/call', ...open.traced });
  const meta = Object.keys(trace).length > 0 && { _meta: trace };
  const params: CallToolRequest['params'] = { name, arguments: input, ...more, ...meta };
  const progress = progressStream(about.clock, context);
  try {
    return await open.ask(`the call to "${name}"`, signal, (client) =>
      client
        .callTool(params, {
          signal,
          timeout: about.timeout,
          resetTimeoutOnProgress: true,
          maxTotalTimeout: maxCallMs,
          // A server may take a client that wants to see progress for one that wants no task.
          ...(!about.tasks && { onprogress: (report) => progress.report(report) }),
          // Without the output schema: the package would also ask it of a result that asks for input.
          toolDefinition: withoutOutput,
          allowInputRequired: true,
        })
        .catch((error: unknown) => {
          if (isUnknownTool(error)) about.onUnknownTool();
          throw error;
        }),
    );
  } finally {
    progress.end();
  }
}

function isInputRequired(result: Result): result is InputRequiredResult {
  return 'resultType' in result && result.resultType === 'input_required';
}

function isUnknownTool(error: unknown): boolean {
  const { code } = Object(error) as { readonly code?: unknown };
  return code === -32602 || code === -32601;
}

const progressEveryMs = 100;

/** Streams the progress of a call, at most every 100 ms. The last report of a call is always streamed, at its end at the latest. */
export function progressStream(clock: Clock, context: ToolContext) {
  let held: Progress | undefined;
  let cancel: (() => void) | undefined;
  const show = (): void => {
    cancel = undefined;
    if (held === undefined) return;
    const { progress, total, message } = held;
    held = undefined;
    cancel = after(clock, progressEveryMs, show);
    void context.stream(defined({ progress, total, message }));
  };
  return {
    report(progress: Progress): void {
      held = progress;
      if (cancel === undefined) show();
    },
    end(): void {
      cancel?.();
      show();
      cancel?.();
    },
  };
}
