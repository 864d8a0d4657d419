import type { ActionContext } from '../../core/action.ts';
import { settled } from '../../core/async/promises.ts';
import {
  abortError,
  type LinkedSignal,
  raceSignal,
  throwIfAborted,
} from '../../core/async/signal.ts';
import { WaymarkError } from '../../core/error.ts';
import { jsonLength } from '../../core/json/json.ts';
import type { Clock } from '../../core/time.ts';
import type { Message, Part } from '../../protocol/message.ts';
import type { ModelChunk } from '../../protocol/turn.ts';
import { defaultLimits, type Limits } from '../generate-options.ts';
import { composeModel, type Middleware, type ModelStep } from '../middleware/middleware.ts';
import type { Model, ModelRef, ModelRequest } from '../model.ts';
import type { Compaction } from './request.ts';
import type { Answer, Progress } from './response.ts';
import { runModel } from './run-model.ts';

export interface ModelCallScope extends AnswerScope {
  readonly newId: () => string;
  readonly use: readonly Middleware[];
  readonly context: ActionContext;
  resolveModel(ref: ModelRef): Model;
  readonly compaction: Compaction;
}

/** Calls the model once and adds its answer to the progress. The signal always ends the wait. */
export async function callModel(scope: ModelCallScope, request: ModelRequest): Promise<Answer> {
  const { stop, progress } = scope;
  const { signal } = stop;
  throwIfAborted(signal);
  progress.startAnswer();
  const stream = new AnswerStream(scope);
  let model = scope.model.name;
  const call = composeModel(scope.use, async (step) => {
    model = step.model.name;
    const response = await runModel(step.model, step.request, step.call, (wait) =>
      stream.whileWaiting(wait),
    );
    // Each call that was made counts, whatever the middleware makes of its answer.
    progress.addUsage(response.usage);
    return response;
  });
  try {
    const response = await raceSignal(call(toStep(scope, request, stream)), signal);
    const message = progress.add(withSummary(withRefs(response.message, scope.newId), scope));
    // A model that does not stream gives its answer at once.
    if (!stream.used) await raceSignal(stream.takeWhole(message), signal);
    return { ...response, message, model };
  } catch (error) {
    if (signal.aborted) throw abortError(signal);
    throw error;
  } finally {
    stream.end();
  }
}

function toStep(scope: ModelCallScope, request: ModelRequest, stream: AnswerStream): ModelStep {
  const { model, context, clock, stop } = scope;
  return {
    model,
    request,
    call: { signal: stop.signal, context, stream: (chunk) => stream.take(chunk) },
    clock,
    hasStreamed: () => stream.used,
    resolveModel: (ref) => scope.resolveModel(ref),
  };
}

/** The answer with the summary that was made for it: they are stored together. */
function withSummary(message: Message, { compaction }: ModelCallScope): Message {
  const { made } = compaction;
  if (made === undefined) return message;
  compaction.made = undefined;
  return { ...message, metadata: { ...message.metadata, summary: { ...made } } };
}

// Requests are matched with their answers by name and ref, so each needs its own ref.
function withRefs(message: Message, newId: () => string): Message {
  if (!message.content.some((part) => 'toolRequest' in part)) return message;
  const seen = new Set<string>();
  let changed = false;
  const content = message.content.map((part) => {
    if (!('toolRequest' in part)) return part;
    const { ref } = part.toolRequest;
    if (ref !== undefined && ref !== '' && !seen.has(ref)) {
      seen.add(ref);
      return part;
    }
    changed = true;
    return { ...part, toolRequest: { ...part.toolRequest, ref: newId() } };
  });
  return changed ? { ...message, content } : message;
}

export interface AnswerScope {
  readonly clock: Clock;
  readonly model: Model;
  readonly limits: Limits;
  /** Ends this generate call alone. */
  readonly stop: LinkedSignal;
  readonly progress: Progress;
  emit(chunk: ModelChunk): void | Promise<void>;
}

/** Passes the pieces of one answer to the reader, and stops an answer that stays silent or grows too long. */
class AnswerStream {
  readonly #scope: AnswerScope;
  readonly #endWatch: () => void;
  readonly #most: number;
  readonly index: number;
  #length = 0;
  #pieces = 0;
  /** Grows with each sign of life, which is a piece of the answer or the end of a wait. */
  #signs = 0;
  #waits = 0;
  #ended = false;

  constructor(scope: AnswerScope) {
    const { limits, clock, stop, model, progress } = scope;
    this.#scope = scope;
    this.#most = limits.answerLength ?? defaultLimits.answerLength;
    this.index = progress.length;
    const idleTimeout = limits.idleTimeout ?? defaultLimits.idleTimeout;
    let seen = 0;
    this.#endWatch = clock.every(idleTimeout, () => {
      // A model that waits for a slow reader is not silent.
      if (this.#signs === seen && this.#waits === 0) stop.abort(silent(model.name, idleTimeout));
      seen = this.#signs;
    });
  }

  get used(): boolean {
    return this.#pieces > 0;
  }

  take(chunk: ModelChunk): void | Promise<void> {
    const { progress, model, stop, emit } = this.#scope;
    // The caller has cancelled this answer and wants no more of it.
    if (this.#ended || stop.signal.aborted) return;
    if (!Array.isArray(chunk?.content)) throw notAChunk(model.name);
    this.#pieces++;
    this.#signs++;
    for (const part of chunk.content) this.#length += lengthOf(part);
    if (this.#length > this.#most) {
      const error = endless(model.name, this.#most);
      stop.abort(error);
      throw error;
    }
    progress.addChunk(chunk);
    const wait = emit({ role: 'model', index: this.index, content: chunk.content });
    if (wait === undefined || wait === settled) return wait;
    return this.whileWaiting(wait);
  }

  /** Suspends the watch for silence while the call waits for something other than the model. */
  whileWaiting<Value>(wait: Promise<Value>): Promise<Value> {
    this.#waits++;
    return wait.finally(() => {
      this.#waits--;
      this.#signs++;
    });
  }

  /** Emits an answer that was not streamed. */
  async takeWhole({ content }: Message): Promise<void> {
    await this.#scope.emit({ role: 'model', index: this.index, content });
  }

  end(): void {
    this.#ended = true;
    this.#endWatch();
  }
}

function lengthOf(part: Part): number {
  if ('text' in part) return part.text.length;
  if ('reasoning' in part) return part.reasoning.length;
  if ('media' in part) return part.media.url.length;
  // Tool requests and data: a model can send any number of them, also with nothing in them.
  return jsonLength(part, Number.POSITIVE_INFINITY);
}

function silent(model: string, idleTimeout: number): WaymarkError {
  return new WaymarkError(
    'DEADLINE_EXCEEDED',
    `Model "${model}" sent nothing for ${idleTimeout} ms. Raise \`limits.idleTimeout\` if it needs longer.`,
    { details: { model, retryable: true } },
  );
}

function endless(model: string, most: number): WaymarkError {
  return new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `The answer of model "${model}" is longer than ${most} characters. Raise \`limits.answerLength\`, or set \`config.maxOutputTokens\`.`,
  );
}

function notAChunk(model: string): WaymarkError {
  return new WaymarkError(
    'INTERNAL',
    `Model "${model}" streamed something that is not a chunk: expected { content: [parts] }.`,
  );
}
