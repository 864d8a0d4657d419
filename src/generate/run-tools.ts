import type { ActionContext } from '../core/action.ts';
import { mapConcurrent } from '../core/async/map-concurrent.ts';
import { raceSignal } from '../core/async/signal.ts';
import { closest } from '../core/closest.ts';
import { isWaymarkError, publicMessageOf, WaymarkError } from '../core/error.ts';
import { type Json, type JsonObject, toJson } from '../core/json/json.ts';
import type { Clock } from '../core/time/clock.ts';
import { inSpan } from '../core/trace.ts';
import { genAi, operations } from '../core/trace-names.ts';
import type { ToolRequestPart, ToolResponsePart } from '../protocol/message.ts';
import {
  recordOf,
  type ToolRecord,
  withoutRecord,
  withRecord,
} from '../protocol/messages/tool-record.ts';
import type { ModelChunk } from '../protocol/turn.ts';
import { type ApprovalState, approvalProgress } from './approval.ts';
import { isBadCall, markBadCall } from './bad-call.ts';
import { generateScope, insideTool, type ToolRecorder } from './hooks.ts';
import { deadlineMetadata, type InterruptDeadline } from './interrupt-deadline.ts';
import { defaultLimits, type Limits } from './limits.ts';
import { composeTool, type Middleware } from './middleware/middleware.ts';
import { respond } from './open-requests.ts';
import type { Progress, ToolOutcome } from './progress.ts';
import type { Tool } from './tool.ts';
import type { ToolContext } from './tool-context.ts';
import { toolReplay } from './tool-replay.ts';
import { watchTool } from './tool-telemetry.ts';

/** What a tool call is, for those who add to its context. */
export interface ToolCallInfo {
  readonly name: string;
  readonly ref: string;
}

/** What tool calls need from the generate call around them. */
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
  /** What an app adds to the context of its tools. */
  toolExtras(call: ToolCallInfo): object;
  /** Hands a chunk to the reader. */
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

/**
 * Runs tools side by side, a bounded number at a time, and gives what each came to, in order; rejects at once when the
 * signal aborts.
 */
export async function runTools(
  scope: ToolScope,
  runs: readonly ToolRun[],
): Promise<readonly ToolOutcome[]> {
  const { progress, signal } = scope;
  const index = progress.length;
  progress.startTools(runs.map(({ request }) => request));
  const most = scope.limits.toolConcurrency ?? defaultLimits.toolConcurrency;
  const changedAt: (number | undefined)[] = [];
  const outcomes = mapConcurrent(runs, most, async (run, at): Promise<ToolOutcome> => {
    // A call that has not begun when the turn is stopped does not begin.
    signal.throwIfAborted();
    const outcome = run.response
      ? { response: run.response }
      : await runRecorded(scope, run, index, (change) => {
          changedAt[at] = change;
        });
    progress.endTool(at, outcome);
    if ('response' in outcome) {
      await scope.emit({ role: 'tool', index, content: [withoutRecord(outcome.response)] });
    }
    return outcome;
  });
  const ended = await raceSignal(outcomes, signal);
  toolReplay.get()?.endRound();
  return withOrder(ended, changedAt);
}

/** Runs a tool, and adds to its outcome what it did to the session and how it was restarted. */
async function runRecorded(
  scope: ToolScope,
  run: ToolRun,
  index: number,
  onChange: (firstChange: number | undefined) => void,
): Promise<ToolOutcome> {
  const recorder = generateScope.get()?.hooks?.recordTool?.();
  if (recorder === undefined) return await runOrReplay(scope, run, index);
  const outcome = await recorder.run(() => runOrReplay(scope, run, index));
  const record = recordOfRun(run, recorder);
  if (record === undefined) return outcome;
  onChange(recorder.firstChange);
  return withRecordOf(outcome, record);
}

function withRecordOf(outcome: ToolOutcome, record: ToolRecord): ToolOutcome {
  return 'response' in outcome
    ? { response: withRecord(outcome.response, record) }
    : { interrupted: withRecord(outcome.interrupted, record) };
}

/** Adds the order of the changes to the records, where it is not that of the calls. */
function withOrder(
  outcomes: readonly ToolOutcome[],
  changedAt: readonly (number | undefined)[],
): readonly ToolOutcome[] {
  const changes = changedAt.filter((change) => change !== undefined);
  const order = changes.toSorted((a, b) => a - b);
  if (changes.every((change, place) => change === order[place])) return outcomes;
  return outcomes.map((outcome, at) => {
    const change = changedAt[at];
    const part = 'response' in outcome ? outcome.response : outcome.interrupted;
    const record = recordOf(part);
    if (change === undefined || record === undefined) return outcome;
    return withRecordOf(outcome, { ...record, order: order.indexOf(change) });
  });
}

function recordOfRun(
  { request, resumed, isEdited = false }: ToolRun,
  recorder: ToolRecorder,
): ToolRecord | undefined {
  const effects = recorder.record();
  if (resumed === undefined) return effects;
  return { ...effects, resumed, ...(isEdited && { input: request.toolRequest.input ?? null }) };
}

async function runOrReplay(scope: ToolScope, run: ToolRun, index: number): Promise<ToolOutcome> {
  const { request, resumed } = run;
  const replay = toolReplay.get();
  // A tool that no longer exists is refused as in production.
  if (replay === undefined || !scope.tools.has(request.toolRequest.name))
    return await runTool(scope, run, index);
  return (await replay.answer({ request, resumed })) ?? (await runTool(scope, run, index));
}

async function runTool(
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
    try {
      const tool = scope.tools.get(name);
      if (!tool) throw markBadCall(unknownTool(name, scope));
      const before = resumed === undefined ? undefined : request.metadata;
      const call = { name, ref, resumed, before, index, interrupt, attached };
      const context = toContext(scope, call);
      const run = composeTool(scope.use, async (step) =>
        // Checked by the tool itself, as model output may be anything.
        toJson(
          await step.tool.run(step.request.input, step.context),
          `The output of tool "${name}"`,
        ),
      );
      const output = await insideTool(() => run({ tool, request: toolRequest, context }));
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
    /** What was stored with the call while it waited. */
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
    checkpoint: async (_, fn) => await fn(),
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
  const existing = names.length > 0 ? `There is ${names.join(', ')}.` : 'There are no tools.';
  const away =
    missing.length > 0 ? ` The tools of ${missing.join(', ')} are not available now.` : '';
  return new WaymarkError('NOT_FOUND', `There is no tool "${name}". ${existing}${away}`);
}
