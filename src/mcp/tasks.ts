import type {
  CallToolResult,
  Client,
  InputRequiredResult,
  Tool as McpTool,
} from '@modelcontextprotocol/client';
import * as v from 'valibot';
import { hasStatus, WaymarkError } from '../core/error.ts';
import type { JsonObject } from '../core/json/json.ts';
import type { UntrustedSchema } from '../core/schema/untrusted-schema.ts';
import { backoff, type Clock } from '../core/time.ts';
import { isLostRun, type ToolContext } from '../generate/tool/tool-context.ts';
import { anyResult, loadSdk } from './client.ts';
import type { McpConnection, OpenClient } from './connection.ts';

export interface ToolServer {
  readonly server: string;
  readonly connection: McpConnection;
  readonly timeout: number;
  /** Whether the server is asked to run calls as tasks. */
  readonly tasks: boolean;
  readonly clock: Clock;
  /** Called when the server does not know a tool that it has listed. */
  onUnknownTool(): void;
}

export interface ServerToolCall {
  readonly definition: McpTool;
  /** The schema of its structured content. */
  readonly outputSchema: UntrustedSchema | undefined;
  readonly about: ToolServer;
  readonly input: JsonObject;
}

/** Whether the server may answer a call with a task. A server of 2025 says which of its tools must be called so. */
export function mayBeTask({ definition, about }: ServerToolCall): boolean {
  return about.tasks || taskSupportOf(definition) === 'required';
}

/** Whether a server of 2025 is asked to run the call as a task. */
export function isLegacyTask({ definition, about }: ServerToolCall): boolean {
  const support = taskSupportOf(definition);
  return support === 'required' || (support === 'optional' && about.tasks);
}

function taskSupportOf(definition: McpTool): unknown {
  return (definition as { execution?: { taskSupport?: unknown } }).execution?.taskSupport;
}

const object = v.record(v.string(), v.unknown());
const milliseconds = v.optional(v.nullable(v.number()));
/** A task as `tasks/get` of either generation shows it. */
const taskState = v.looseObject({
  status: v.picklist(['working', 'input_required', 'completed', 'failed', 'cancelled']),
  statusMessage: v.optional(v.nullable(v.string())),
  pollIntervalMs: milliseconds,
  pollInterval: milliseconds,
  result: v.optional(object),
  error: v.optional(object),
  inputRequests: v.optional(object),
});
type TaskState = v.InferOutput<typeof taskState>;

const maxTaskMs = 24 * 60 * 60_000;
const retryDelays = { baseMs: 500, maxMs: 10_000 };
const cancelTimeoutMs = 5_000;

/** A task of a server: asks for its state until it is no longer working. */
export class FollowedTask {
  readonly #call: ServerToolCall;
  readonly taskId: string;
  readonly #context: ToolContext;

  constructor(call: ServerToolCall, taskId: string, context: ToolContext) {
    this.#call = call;
    this.taskId = taskId;
    this.#context = context;
  }

  /** Waits until the task has ended or asks something. */
  async settled(): Promise<TaskState> {
    const { clock, timeout } = this.#call.about;
    const begun = clock.now();
    let answeredAt = begun;
    let said: string | undefined;
    for (let failures = 0; ; ) {
      const state = await this.#get().catch((error: unknown) => {
        // The server may be restarting; its task may survive that.
        if (!isPassing(error) || clock.now() - answeredAt >= timeout) throw error;
        return undefined;
      });
      failures = state === undefined ? failures + 1 : 0;
      if (state !== undefined) {
        if (state.status !== 'working') return state;
        answeredAt = clock.now();
        said = this.#show(state, said);
      }
      if (clock.now() - begun > maxTaskMs) throw this.#tooLong();
      const delay = state === undefined ? backoff(failures, retryDelays) : intervalOf(state);
      await clock.sleep(delay, this.#context.signal);
    }
  }

  /** Answers the questions of a task of 2026. */
  async answer(inputResponses: JsonObject): Promise<void> {
    try {
      await this.#request('tasks/update', { inputResponses });
    } catch (error) {
      // A first attempt of this turn may have answered already.
      if (isPassing(error) || (await this.#get()).status === 'input_required') throw error;
    }
  }

  /** The result of a task of 2025, during which the server may ask something. */
  async result(open: OpenClient, signal: AbortSignal): Promise<CallToolResult> {
    const { timeout } = this.#call.about;
    const result = await this.#send(open, 'tasks/result', {}, { signal, timeout });
    return await this.#checked(result);
  }

  /** The result of a task of 2026. */
  async resultOf(state: TaskState): Promise<CallToolResult> {
    const { definition, about } = this.#call;
    if (state.status === 'completed') return await this.#checked(state.result);
    const why = state.error?.message ?? state.statusMessage;
    const said = typeof why === 'string' && why !== '' ? `: ${why.slice(0, 2_000)}` : '.';
    throw new WaymarkError(
      state.status === 'cancelled' ? 'CANCELLED' : 'UNKNOWN',
      `The task of "${definition.name}" at MCP server "${about.server}" ended as ${state.status}${said}`,
    );
  }

  /** The questions of the task, in the shape that the result of a call has. */
  questionsIn({ inputRequests = {} }: TaskState): InputRequiredResult {
    return { resultType: 'input_required', inputRequests } as InputRequiredResult;
  }

  /** Cancels the task if the turn was stopped or took too long, but not if another worker has taken it over. */
  async cancelAfter(error: unknown): Promise<void> {
    const { signal } = this.#context;
    const isLate = hasStatus(error, 'DEADLINE_EXCEEDED');
    if (signal.aborted ? isLostRun(signal) : !isLate) return;
    await this.cancel();
  }

  async cancel(): Promise<void> {
    const { connection } = this.#call.about;
    const signal = AbortSignal.timeout(cancelTimeoutMs);
    const limits = { signal, timeout: cancelTimeoutMs };
    // It may have ended meanwhile.
    await connection
      .use(signal, (open) => this.#send(open, 'tasks/cancel', {}, limits))
      .catch(() => {});
  }

  async #get(): Promise<TaskState> {
    const state = await this.#request('tasks/get', {});
    const parsed = v.safeParse(taskState, state);
    if (parsed.success) return parsed.output;
    throw this.invalid();
  }

  async #request(method: string, params: object): Promise<unknown> {
    const { signal } = this.#context;
    const { connection, timeout } = this.#call.about;
    return await connection.use(signal, (open) =>
      this.#send(open, method, params, { signal, timeout }),
    );
  }

  async #send(
    open: OpenClient,
    method: string,
    params: object,
    limits: { readonly signal: AbortSignal; readonly timeout: number },
  ): Promise<unknown> {
    const request = { method, params: { taskId: this.taskId, ...params } };
    return await open.ask(`the task of "${this.#call.definition.name}"`, limits.signal, (client) =>
      client.request(request as Parameters<Client['request']>[0], anyResult, limits),
    );
  }

  /** A result that came with a task, which the client package has not checked. */
  async #checked(result: unknown): Promise<CallToolResult> {
    const { isCallToolResult } = await loadSdk();
    const whole = v.is(object, result) ? { content: [], ...result } : result;
    if (!isCallToolResult(whole)) throw this.invalid();
    return whole;
  }

  #show({ statusMessage }: TaskState, before: string | undefined): string | undefined {
    if (typeof statusMessage !== 'string' || statusMessage === before) return before;
    void this.#context.stream({ message: statusMessage });
    return statusMessage;
  }

  invalid(details = ''): WaymarkError {
    const { definition, about } = this.#call;
    return new WaymarkError(
      'INTERNAL',
      `MCP server "${about.server}" answered the task of "${definition.name}" with something that is not valid MCP${details}.`,
    );
  }

  #tooLong(): WaymarkError {
    const { definition, about } = this.#call;
    return new WaymarkError(
      'DEADLINE_EXCEEDED',
      `MCP server "${about.server}" did not finish the task of "${definition.name}" within 24 hours.`,
    );
  }
}

function isPassing(error: unknown): boolean {
  return hasStatus(error, 'UNAVAILABLE', 'DEADLINE_EXCEEDED');
}

function intervalOf({ pollIntervalMs, pollInterval }: TaskState): number {
  return Math.min(Math.max(pollIntervalMs ?? pollInterval ?? 1_000, 100), 60_000);
}
