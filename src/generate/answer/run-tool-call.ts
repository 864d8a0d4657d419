import type { ActionContext } from '../../core/action.ts';
import { closest } from '../../core/closest.ts';
import { isWaymarkError, publicMessageOf, toErrorBody, WaymarkError } from '../../core/error.ts';
import { toJsonResult } from '../../core/json/dates.ts';
import { type Json, type JsonObject, toJson } from '../../core/json/json.ts';
import { hasMetrics, recordValue } from '../../core/metrics.ts';
import type { Clock } from '../../core/time.ts';
import { inSpan, type Span } from '../../core/trace.ts';
import { genAi, attributes as names, operations } from '../../core/trace-names.ts';
import type { Part, ToolRequestPart, ToolResponsePart } from '../../protocol/message.ts';
import type { ModelChunk } from '../../protocol/turn.ts';
import { defaultLimits, type Limits } from '../generate-options.ts';
import { callProbe, generateScope, insideTool, type ToolOutcome } from '../hooks.ts';
import { composeTool, type Middleware } from '../middleware/middleware.ts';
import { respond } from '../tool/resume.ts';
import { isBadCall, markBadCall, type Tool } from '../tool/tool.ts';
import {
  type ApprovalState,
  approvalProgress,
  deadlineMetadata,
  type InterruptDeadline,
  type ToolContext,
  unrecorded,
} from '../tool/tool-context.ts';
import { effectHookOf } from '../tool/undo.ts';
import type { Progress } from './response.ts';

/** The identity of a tool call, for code that adds to its context. */
export interface ToolCallInfo {
  readonly name: string;
  readonly ref: string;
}

export interface ToolScope {
  readonly tools: ReadonlyMap<string, Tool>;
  /** The tool sources whose tools are missing. */
  readonly missing: readonly string[];
  readonly use: readonly Middleware[];
  readonly limits: Limits;
  readonly clock: Clock;
  readonly context: ActionContext;
  readonly signal: AbortSignal;
  readonly progress: Progress;
  /** The app's additions to the context of its tools. */
  toolExtras(call: ToolCallInfo): object;
  emit(chunk: ModelChunk): void | Promise<void>;
}

/** A request whose tool is to run; `resumed` is there when it runs again. */
export interface ToolRun {
  readonly request: ToolRequestPart;
  readonly resumed?: Json;
  /** The request has another input than the one that the model asked for. */
  readonly isEdited?: boolean;
  /** A response that is there already; nothing runs. */
  readonly response?: ToolResponsePart;
}

/** Runs the tool of one call, in a span. What the tool throws becomes its response. */
export async function runToolCall(
  scope: ToolScope,
  { request, resumed }: ToolRun,
  index: number,
): Promise<ToolOutcome> {
  const { toolRequest } = request;
  const { name, ref = name } = toolRequest;
  const attributes = {
    [genAi.operation]: operations.executeTool,
    [genAi.toolName]: name,
    [genAi.toolCallId]: ref,
    [genAi.toolType]: 'function',
    [genAi.toolDescription]: scope.tools.get(name)?.description,
  };
  return inSpan(`execute_tool ${name}`, { attributes }, async (span) => {
    const endTool = watchTool(name, span, toolRequest.input);
    const interrupt = new Interrupt(name, scope.clock);
    const attached: JsonObject[] = [];
    let context: ToolContext | undefined;
    try {
      const tool = scope.tools.get(name);
      if (!tool) throw markBadCall(unknownTool(name, scope));
      const before = resumed === undefined ? undefined : request.metadata;
      const call = { name, ref, resumed, before, index, interrupt, attached };
      const own = toContext(scope, call);
      context = own;
      const run = composeTool(scope.use, async (step) => {
        const { input } = step.request;
        // Checked by the tool itself, as model output may be anything.
        const runWith = (given: ToolContext): Promise<unknown> => step.tool.run(input, given);
        const probed = callProbe
          .get()
          ?.tool({ tool: step.tool, input, context: step.context }, runWith);
        return toJsonResult(
          await (probed ?? runWith(step.context)),
          `The output of tool "${name}"`,
        );
      });
      const output = await insideTool(() => run({ tool, request: toolRequest, context: own }));
      // An interrupt counts even if the tool caught it: the call must not continue without its approval.
      if (interrupt.data === undefined) {
        endTool({ output });
        return { response: withContent(respond({ name, ref }, output), scope, attached) };
      }
    } catch (error) {
      if (interrupt.data === undefined) {
        span.recordError(error);
        endTool({ error });
        // The model corrects an invalid call itself.
        if (!scope.signal.aborted && !isBadCall(error)) {
          generateScope.get()?.hooks?.onFailure?.(error, { tool: name });
        }
        return { response: errorResponse({ name, ref }, error) };
      }
    }
    endTool({});
    await effectHookOf(context)?.cancel();
    return { interrupted: interrupted(request, interrupt.data, interrupt.metadata) };
  });
}

/** Whether a tool interrupted itself, and with what. */
class Interrupt {
  readonly #tool: string;
  readonly #clock: Clock;
  data: Json | undefined;
  approval: ApprovalState | undefined;
  #deadline: JsonObject = {};

  constructor(tool: string, clock: Clock) {
    this.#tool = tool;
    this.#clock = clock;
  }

  raise(data: Json = true, deadline: InterruptDeadline = {}): never {
    this.#deadline = deadlineMetadata(deadline, this.#clock);
    // `false` says that a request does not wait.
    this.data = toJson(data === false ? true : data, `What tool "${this.#tool}" interrupts with`);
    throw new WaymarkError(
      'CANCELLED',
      `Tool "${this.#tool}" is interrupted and waits for an answer.`,
    );
  }

  /** When it expires and what happens then, and how far the approval of the call is. */
  get metadata(): JsonObject {
    return { ...this.#deadline, ...(this.approval && { approval: this.approval }) };
  }
}

function toContext(
  scope: ToolScope,
  call: ToolCallInfo & {
    readonly resumed: Json | undefined;
    /** The metadata that was stored with the call while it waited. */
    readonly before: JsonObject | undefined;
    readonly index: number;
    readonly interrupt: Interrupt;
    readonly attached: JsonObject[];
  },
): ToolContext {
  const { name, ref, resumed, before, index, interrupt, attached } = call;
  return {
    signal: scope.signal,
    context: scope.context,
    ref,
    resumed,
    interrupted: before?.interrupt,
    idempotencyKey: ref,
    checkpoint: unrecorded,
    interrupt: (data, deadline) => interrupt.raise(data, deadline),
    attach: (...content) => void attached.push(...content),
    stream: (output) => {
      if (scope.signal.aborted) return undefined;
      const part = respond({ name, ref }, toJson(output, `What tool "${name}" streams`), {
        partial: true,
      });
      return scope.emit({ role: 'tool', index, content: [part] });
    },
    ...scope.toolExtras({ name, ref }),
    ...approvalProgress({
      state: toApproval(before?.approval),
      set: (state) => {
        interrupt.approval = state;
      },
    }),
  };
}

function toApproval(stored: Json | undefined): ApprovalState | undefined {
  return stored === 'asked' || stored === 'given' ? stored : undefined;
}

function interrupted(
  { toolRequest, metadata }: ToolRequestPart,
  data: Json,
  about: JsonObject,
): ToolRequestPart {
  // A call that was restarted and interrupts again has a new deadline, or none.
  const { expiresAt: _, onExpiry: __, approval: ___, ...rest } = metadata ?? {};
  return { toolRequest, metadata: { ...rest, interrupt: data, ...about } };
}

/** A response with what its tool attached, if it is not too long for a model. */
function withContent(
  response: ToolResponsePart,
  { limits }: ToolScope,
  attached: readonly JsonObject[],
): ToolResponsePart {
  const { name, output = null } = response.toolResponse;
  const content = attached.map((part) => toJson(part, `What tool "${name}" attaches`));
  const most = limits.toolResultLength ?? defaultLimits.toolResultLength;
  const length = lengthOf(output) + (content.length > 0 ? lengthOf(content) : 0);
  if (length > most) {
    throw new WaymarkError(
      'RESOURCE_EXHAUSTED',
      `The output of tool "${name}" has ${length} characters, of at most ${most}. Ask it for less.`,
    );
  }
  if (content.length === 0) return response;
  return { ...response, toolResponse: { ...response.toolResponse, content } };
}

function lengthOf(value: Json): number {
  return typeof value === 'string' ? value.length : JSON.stringify(value).length;
}

// The model reads what went wrong and can do better; that is why a tool's own message is passed on, and its stack is not.
function errorResponse(request: ToolCallInfo, error: unknown): ToolResponsePart {
  const status = isWaymarkError(error) ? error.status : 'UNKNOWN';
  const text = isWaymarkError(error) ? publicMessageOf(error) : textOf(error);
  const message = text === '' ? 'The tool failed.' : text;
  return respond(request, message, { error: { status } } satisfies JsonObject);
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : '';
}

function unknownTool(name: string, { tools, missing }: ToolScope): WaymarkError {
  const names = closest(name, [...tools.keys()]).slice(0, 10);
  const existing =
    names.length > 0 ? `Available tools: ${names.join(', ')}.` : 'There are no tools.';
  const away =
    missing.length > 0 ? ` The tools of ${missing.join(', ')} are not available now.` : '';
  return new WaymarkError('NOT_FOUND', `There is no tool "${name}". ${existing}${away}`);
}

/** How a tool call ended: with its output, with an error, or waiting for an answer. */
type ToolEnd = { readonly output?: Json; readonly error?: unknown };

const ignore = (): void => {};

/** Measures a tool call for its span and the metrics. The returned function takes its end. */
function watchTool(name: string, span: Span, input: Json | undefined): (end: ToolEnd) => void {
  if (!span.recording && !hasMetrics()) return ignore;
  const startedAt = performance.now();
  return ({ output, error }) => {
    recordValue('gen_ai.execute_tool.duration', (performance.now() - startedAt) / 1000, {
      [genAi.toolName]: name,
      [genAi.toolType]: 'function',
      ...(error !== undefined && { [names.errorType]: toErrorBody(error).status }),
    });
    showContent(name, span, input, output);
  };
}

// Only with `telemetry.content`, and only what the agent's transform lets out of such messages.
function showContent(
  name: string,
  span: Span,
  input: Json | undefined,
  output: Json | undefined,
): void {
  const show = generateScope.get()?.hooks?.showMessages;
  if (show === undefined || !span.recording) return;
  const shown = (role: 'model' | 'tool', part: Part): Part | undefined =>
    show([{ role, content: [part] }])[0]?.content[0];
  const request = shown('model', { toolRequest: { name, ...(input !== undefined && { input }) } });
  const response =
    output === undefined ? undefined : shown('tool', { toolResponse: { name, output } });
  span.setAttributes({
    [genAi.toolArguments]:
      request !== undefined && 'toolRequest' in request
        ? JSON.stringify(request.toolRequest.input)
        : undefined,
    [genAi.toolResult]:
      response !== undefined && 'toolResponse' in response
        ? JSON.stringify(response.toolResponse.output)
        : undefined,
  });
}
