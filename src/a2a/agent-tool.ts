import { abortError } from '../core/async/signal.ts';
import { hasStatus, WaymarkError } from '../core/error.ts';
import type { Json } from '../core/json/json.ts';
import { backoff } from '../core/time.ts';
import { type Tool, tool } from '../generate/tool/tool.ts';
import { isLostRun, type ToolContext } from '../generate/tool/tool-context.ts';
import { A2aClient, isPassing, type OutgoingMessage } from './client.ts';
import { type A2aAgentToolOptions, type ResolvedOptions, resolveOptions } from './options.ts';
import type { RemoteMessage, RemoteTask } from './shapes.ts';
import {
  answerMessage,
  failureOf,
  handleOf,
  interruptData,
  resultOf,
  stateOf,
  type TaskHandle,
} from './task.ts';
import { TaskStream } from './task-stream.ts';

const messageInput = {
  type: 'object',
  properties: { message: { type: 'string', description: 'What the agent is asked to do.' } },
  required: ['message'],
} as const;

/**
 * Offers an agent of another server to a model as a tool, over A2A 1.0 or 0.3. `url` is the address of the agent or of its card.
 * The text of the answer is the result, and streams as the tool's progress. Questions of the remote agent interrupt the tool:
 * answer with `approve({ resumed })`, where `resumed` fits the `schema` of the interrupt. Stopping the turn cancels the task.
 * The task's id is stored with the run, so a process that takes over the turn follows the task instead of starting another one.
 *
 * @example
 * const translator = a2aAgentTool('https://agents.example.com/a2a/translator', {
 *   name: 'translator',
 *   description: 'Translates texts into any language.',
 * });
 * app.defineAgent({ name: 'writer', system: 'Write.', tools: [translator] });
 */
export function a2aAgentTool(url: string | URL, options: A2aAgentToolOptions): Tool {
  const resolved = resolveOptions(url, options);
  const { name, description, clock, timeout } = resolved;
  return tool({ name, description, input: messageInput }, async (input, context) => {
    const { message } = input as { readonly message?: unknown };
    const deadline = clock.now() + timeout;
    const agent = await A2aClient.connect(resolved, context.signal);
    return await new RemoteCall(agent, resolved, context, deadline).run(String(message ?? ''));
  }) as Tool;
}

type Sent = { readonly taskId: string } | { readonly message: RemoteMessage };

const pollDelays = { baseMs: 500, maxMs: 5_000 };

class RemoteCall {
  readonly #agent: A2aClient;
  readonly #options: ResolvedOptions;
  readonly #context: ToolContext;
  readonly #deadline: number;
  #taskId: string | undefined;

  constructor(agent: A2aClient, options: ResolvedOptions, context: ToolContext, deadline: number) {
    this.#agent = agent;
    this.#options = options;
    this.#context = context;
    this.#deadline = deadline;
  }

  async run(message: string): Promise<Json> {
    const { interrupted, resumed } = this.#context;
    const before = handleOf(interrupted);
    try {
      const sent =
        before === undefined || resumed === undefined
          ? await this.#send({ text: message })
          : await this.#answer(before, resumed);
      if (!('taskId' in sent)) return resultOf(sent.message, this.#context);
      this.#taskId = sent.taskId;
      return this.#resultOf(await this.#end(sent.taskId));
    } catch (error) {
      // Also if the turn was stopped while the task was started, and nothing could be stored any more.
      if (this.#taskId !== undefined && this.#shouldCancel(error)) {
        await this.#cancel(this.#taskId);
      }
      throw error;
    }
  }

  #resultOf(task: RemoteTask): Json {
    switch (stateOf(task)) {
      case 'completed':
        return resultOf(task, this.#context);
      case 'input-required':
      case 'auth-required':
        return this.#context.interrupt(interruptData(task));
      default:
        throw failureOf(this.#options.name, task);
    }
  }

  /** Sends a message once; a second attempt of the run finds the task that the first one has started. */
  async #send(message: Omit<OutgoingMessage, 'messageId'>): Promise<Sent> {
    const { checkpoint, idempotencyKey } = this.#context;
    return await checkpoint('a2a', async () => {
      const outgoing = { ...message, messageId: idempotencyKey };
      // Not with the signal of the call: a task that was started must be known, to be cancelled.
      const signal = AbortSignal.timeout(this.#options.requestTimeout);
      const sent = await this.#agent.send(outgoing, signal);
      if (!('status' in sent)) return { message: sent };
      this.#taskId = sent.id;
      return { taskId: sent.id };
    });
  }

  async #answer({ taskId, contextId, ...asked }: TaskHandle, resumed: Json): Promise<Sent> {
    const answer = answerMessage({ taskId, ...asked }, resumed);
    try {
      return await this.#send({ ...answer, taskId, contextId });
    } catch (error) {
      if (!hasStatus(error, 'INVALID_ARGUMENT')) throw error;
      // The answer does not fit: the question is still open.
      const task = await this.#agent.get(taskId, this.#context.signal);
      if (stateOf(task) !== 'input-required') throw error;
      return this.#context.interrupt(interruptData(task));
    }
  }

  /** The task, when it has ended or waits for input. */
  async #end(taskId: string): Promise<RemoteTask> {
    const { signal } = this.#context;
    const stream = new TaskStream(this.#options, (text) => void this.#context.stream(text));
    for (let attempt = 1; ; attempt++) {
      const task = await this.#get(taskId);
      if (task && !['submitted', 'working'].includes(stateOf(task))) return task;
      if (this.#options.clock.now() >= this.#deadline) throw this.#tooLate();
      const canFollow = this.#agent.streaming && task !== undefined;
      const isFollowed = canFollow && (await this.#follow(taskId, stream));
      if (isFollowed && attempt === 1) continue;
      await this.#options.clock.sleep(backoff(attempt, pollDelays), signal);
    }
  }

  async #get(taskId: string): Promise<RemoteTask | undefined> {
    try {
      return await this.#agent.get(taskId, this.#context.signal);
    } catch (error) {
      // The remote agent may be restarting; its task survives that.
      if (isPassing(error) && this.#options.clock.now() < this.#deadline) return undefined;
      throw error;
    }
  }

  /** Follows the stream of the task; `false` if there is none, or it broke off. */
  async #follow(taskId: string, stream: TaskStream): Promise<boolean> {
    const { signal } = this.#context;
    const left = AbortSignal.timeout(Math.max(1, this.#deadline - this.#options.clock.now()));
    try {
      await this.#agent.follow(taskId, AbortSignal.any([signal, left]), stream);
      return true;
    } catch (error) {
      if (signal.aborted) throw abortError(signal);
      if (hasStatus(error, 'RESOURCE_EXHAUSTED')) throw error;
      return false;
    } finally {
      stream.flush();
    }
  }

  // A worker that lost the run must not cancel the task: the one that took over follows it.
  #shouldCancel(error: unknown): boolean {
    const { signal } = this.#context;
    if (signal.aborted) return !isLostRun(signal);
    return hasStatus(error, 'RESOURCE_EXHAUSTED', 'DEADLINE_EXCEEDED');
  }

  async #cancel(taskId: string): Promise<void> {
    const signal = AbortSignal.timeout(Math.min(this.#options.requestTimeout, 5_000));
    // It may have ended meanwhile.
    await this.#agent.cancel(taskId, signal).catch(() => {});
  }

  #tooLate(): WaymarkError {
    const { name, timeout } = this.#options;
    return new WaymarkError(
      'DEADLINE_EXCEEDED',
      `The remote agent "${name}" did not finish the task within ${timeout} ms.`,
    );
  }
}
