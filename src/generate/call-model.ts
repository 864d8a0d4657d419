import type { ActionContext } from '../core/action.ts';
import type { Clock } from '../core/clock.ts';
import { WaymarkError } from '../core/error.ts';
import type { NewId } from '../core/id.ts';
import { abortError, type LinkedSignal, raceSignal, throwIfAborted } from '../core/signal.ts';
import { inSpan, type Span } from '../core/trace.ts';
import { genAi, operations } from '../core/trace-names.ts';
import type { Message, Part } from '../protocol/message.ts';
import type { ModelChunk } from '../protocol/turn.ts';
import { fromProviderError } from './language-model/errors.ts';
import { defaultLimits, type Limits } from './limits.ts';
import { composeModel, type Middleware, type ModelStep } from './middleware/middleware.ts';
import type { Model, ModelRef, ModelRequest, ModelResponse } from './model.ts';
import type { Progress } from './progress.ts';

/** What a model call needs from the generate call around it. */
export interface ModelCallScope {
  readonly clock: Clock;
  readonly newId: NewId;
  readonly model: Model;
  readonly use: readonly Middleware[];
  readonly limits: Limits;
  readonly context: ActionContext;
  /** Ends this generate call alone. */
  readonly stop: LinkedSignal;
  readonly progress: Progress;
  /** Hands a chunk to the reader. */
  emit(chunk: ModelChunk): void | Promise<void>;
  resolveModel(ref: ModelRef): Model;
}

/** An answer, and the model that gave it, which may be another than the one that was asked first. */
export interface Answer extends ModelResponse {
  readonly model: string;
}

/** Calls the model once and adds its answer to the progress. The signal always ends the wait. */
export async function callModel(scope: ModelCallScope, request: ModelRequest): Promise<Answer> {
  const { stop, progress } = scope;
  const { signal } = stop;
  throwIfAborted(signal);
  progress.startAnswer();
  const stream = new AnswerStream(scope);
  let model = scope.model.name;
  const call = composeModel(scope.use, (step) => {
    model = step.model.name;
    return runModel(step);
  });
  try {
    const response = await raceSignal(call(toStep(scope, request, stream)), signal);
    const message = progress.add(withRefs(response.message, scope.newId));
    progress.addUsage(response.usage);
    // A model that does not stream is heard all at once.
    if (!stream.used) {
      await scope.emit({ role: 'model', index: stream.index, content: message.content });
    }
    return { ...response, message, model };
  } catch (error) {
    if (signal.aborted) throw abortError(signal);
    throw error;
  } finally {
    stream.end();
  }
}

function runModel({ model, request, call }: ModelStep): Promise<ModelResponse> {
  const attributes = {
    [genAi.operation]: operations.chat,
    [genAi.requestModel]: model.name,
    [genAi.provider]: model.provider,
  };
  return inSpan(`chat ${model.name}`, { kind: 'client', attributes }, async (span) => {
    try {
      const response = checkResponse(await model.run(request, call), model.name);
      describe(span, response);
      return response;
    } catch (error) {
      throwIfAborted(call.signal);
      throw fromProviderError(error, model.name);
    }
  });
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

/** The pieces of one answer on their way to the reader, watched for silence and for never coming to an end. */
class AnswerStream {
  readonly #scope: ModelCallScope;
  readonly #endWatch: () => void;
  readonly #most: number;
  readonly index: number;
  #length = 0;
  #pieces = 0;
  #ended = false;

  constructor(scope: ModelCallScope) {
    const { limits, clock, stop, model, progress } = scope;
    this.#scope = scope;
    this.#most = limits.answerLength ?? defaultLimits.answerLength;
    this.index = progress.length;
    const idleMs = limits.idleMs ?? defaultLimits.idleMs;
    let seen = 0;
    this.#endWatch = clock.every(idleMs, () => {
      if (this.#pieces === seen) stop.abort(silent(model.name, idleMs));
      seen = this.#pieces;
    });
  }

  get used(): boolean {
    return this.#pieces > 0;
  }

  take(chunk: ModelChunk): void | Promise<void> {
    const { progress, model, stop, emit } = this.#scope;
    // Whoever has given up on this answer does not want to hear more of it.
    if (this.#ended || stop.signal.aborted) return;
    if (!Array.isArray(chunk?.content)) throw notAChunk(model.name);
    this.#pieces++;
    for (const part of chunk.content) this.#length += lengthOf(part);
    if (this.#length > this.#most) {
      const error = endless(model.name, this.#most);
      stop.abort(error);
      throw error;
    }
    progress.addChunk(chunk);
    return emit({ role: 'model', index: this.index, content: chunk.content });
  }

  end(): void {
    this.#ended = true;
    this.#endWatch();
  }
}

function lengthOf(part: Part): number {
  if ('text' in part) return part.text.length;
  if ('reasoning' in part) return part.reasoning.length;
  return 'media' in part ? part.media.url.length : 0;
}

function checkResponse(response: ModelResponse, model: string): ModelResponse {
  if (response?.message?.role === 'model' && Array.isArray(response.message.content))
    return response;
  throw new WaymarkError(
    'INTERNAL',
    `Model "${model}" must return { message, finishReason } with a message of role "model".`,
  );
}

// Requests are matched with their answers by name and ref, so each needs a ref of its own.
function withRefs(message: Message, newId: NewId): Message {
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

function describe(span: Span, { finishReason, usage, metadata }: ModelResponse): void {
  if (!span.recording) return;
  const { responseId, responseModel } = metadata ?? {};
  span.setAttributes({
    [genAi.finishReasons]: [finishReason],
    [genAi.inputTokens]: usage?.inputTokens,
    [genAi.outputTokens]: usage?.outputTokens,
    ...(typeof responseId === 'string' && { [genAi.responseId]: responseId }),
    ...(typeof responseModel === 'string' && { [genAi.responseModel]: responseModel }),
  });
}

function silent(model: string, idleMs: number): WaymarkError {
  return new WaymarkError(
    'DEADLINE_EXCEEDED',
    `Model "${model}" gave no sign of life for ${idleMs} ms. Raise \`limits.idleMs\` if it needs longer.`,
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
