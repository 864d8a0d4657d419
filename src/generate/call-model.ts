import type { ActionContext } from '../core/action.ts';
import { abortError, raceSignal, throwIfAborted } from '../core/async/signal.ts';
import { messageOf, WaymarkError } from '../core/error.ts';
import type { NewId } from '../core/id.ts';
import { inSpan, type Span } from '../core/trace.ts';
import { genAi, operations } from '../core/trace-names.ts';
import type { Message } from '../protocol/message.ts';
import { parseMessage } from '../protocol/parse.ts';
import { type AnswerScope, AnswerStream } from './answer-stream.ts';
import { fromProviderError } from './language-model/errors.ts';
import { composeModel, type Middleware, type ModelStep } from './middleware/middleware.ts';
import type { Model, ModelRef, ModelRequest, ModelResponse } from './model.ts';

/** What a model call needs from the generate call around it. */
export interface ModelCallScope extends AnswerScope {
  readonly newId: NewId;
  readonly use: readonly Middleware[];
  readonly context: ActionContext;
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
    if (!stream.used) await raceSignal(stream.takeWhole(message), signal);
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
      const response = parseResponse(await model.run(request, call), model.name);
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

function parseResponse(response: ModelResponse, model: string): ModelResponse {
  try {
    const message = parseMessage(response.message);
    if (message.role === 'model') return { ...response, message };
  } catch (cause) {
    throw badResponse(model, cause);
  }
  throw badResponse(model);
}

// Requests are matched with their answers by name and ref, so each needs its own ref.
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

function badResponse(model: string, cause?: unknown): WaymarkError {
  const reason = cause === undefined ? '' : ` ${messageOf(cause)}`;
  return new WaymarkError(
    'INTERNAL',
    `Model "${model}" must return { message, finishReason } with a message of role "model".${reason}`,
    { cause, publicMessage: `Model "${model}" failed: its answer has the wrong form.` },
  );
}
