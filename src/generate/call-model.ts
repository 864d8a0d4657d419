import type { ActionContext } from '../core/action.ts';
import { abortError, throwIfAborted } from '../core/async/signal.ts';
import type { NewId } from '../core/id.ts';
import type { Message } from '../protocol/message.ts';
import { type AnswerScope, AnswerStream } from './answer-stream.ts';
import { composeModel, type Middleware, type ModelStep } from './middleware/middleware.ts';
import type { Model, ModelRef, ModelRequest, ModelResponse } from './model.ts';
import type { Compaction } from './request.ts';
import { runModel } from './run-model.ts';

/** What a model call needs from the generate call around it. */
export interface ModelCallScope extends AnswerScope {
  readonly newId: NewId;
  readonly use: readonly Middleware[];
  readonly context: ActionContext;
  resolveModel(ref: ModelRef): Model;
  readonly compaction: Compaction;
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
    const response = await stop.race(call(toStep(scope, request, stream)));
    const message = progress.add(withSummary(withRefs(response.message, scope.newId), scope));
    // A model that does not stream is heard all at once.
    if (!stream.used) await stop.race(stream.takeWhole(message));
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
function withRefs(message: Message, newId: NewId): Message {
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
