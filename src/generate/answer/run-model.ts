import { throwIfAborted } from '../../core/async/signal.ts';
import { messageOf, WaymarkError } from '../../core/error.ts';
import { hasMetrics } from '../../core/metrics.ts';
import { inSpan, type SpanAttributes } from '../../core/trace.ts';
import { operations } from '../../core/trace-names.ts';
import { parseMessage } from '../../protocol/parse.ts';
import { generateScope } from '../hooks.ts';
import { fromProviderError } from '../language-model/errors.ts';
import type { Model, ModelCall, ModelRequest, ModelResponse } from '../model.ts';
import { ModelWatch, requestAttributes } from './model-telemetry.ts';
import { pricedUsage } from './price.ts';

const refusals = new WeakSet<WaymarkError>();

/** Whether an error kept a model from being called: the model has not failed. */
export function isRefusal(error: unknown): boolean {
  return error instanceof WaymarkError && refusals.has(error);
}

/**
 * Calls a model once: asks whether it may, traces the call, prices the answer and reports what it has used. Every model call
 * goes through here, each attempt of a retry and the making of a summary included. `whileWaiting` gets the wait for permission.
 */
export async function runModel(
  model: Model,
  request: ModelRequest,
  call: ModelCall,
  whileWaiting: <Value>(wait: Promise<Value>) => Promise<Value> = (wait) => wait,
): Promise<ModelResponse> {
  const hooks = generateScope.get()?.hooks;
  let reservation: string | undefined;
  try {
    const wait = hooks?.beforeModelCall?.({ model, request, signal: call.signal });
    if (wait !== undefined) reservation = await whileWaiting(wait);
  } catch (error) {
    if (error instanceof WaymarkError) refusals.add(error);
    throw error;
  }
  let response: ModelResponse;
  try {
    throwIfAborted(call.signal);
    response = await answered(model, request, call);
  } catch (error) {
    if (reservation !== undefined) await hooks?.onModelCallFailed?.(reservation);
    throw error;
  }
  const { finishReason, usage = {} } = response;
  const wait = hooks?.onModelCall?.({ model: model.name, finishReason, usage, reservation });
  if (wait !== undefined) await wait;
  return response;
}

function answered(model: Model, request: ModelRequest, call: ModelCall): Promise<ModelResponse> {
  const name = `${operations.chat} ${model.modelId ?? model.name}`;
  const attributes = (): SpanAttributes => requestAttributes(model, request);
  return inSpan(name, { kind: 'client', attributes }, async (span) => {
    const watch = span.recording || hasMetrics() ? new ModelWatch(model, span) : undefined;
    // Set before the call, so that a call that hangs or fails shows what was sent.
    span.setContent({ model: model.name, request });
    try {
      const answer = await model.run(request, watch?.watched(call) ?? call);
      const response = priced(model, parseResponse(answer, model.name));
      watch?.answered(request, response);
      span.setContent({ model: model.name, request, response });
      return response;
    } catch (error) {
      watch?.failed(error);
      throwIfAborted(call.signal);
      throw fromProviderError(error, model.name);
    }
  });
}

function priced(model: Model, response: ModelResponse): ModelResponse {
  const usage = pricedUsage(model, response.usage);
  return usage === undefined || usage === response.usage ? response : { ...response, usage };
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

function badResponse(model: string, cause?: unknown): WaymarkError {
  const reason = cause === undefined ? '' : ` ${messageOf(cause)}`;
  return new WaymarkError(
    'INTERNAL',
    `Model "${model}" must return { message, finishReason } with a message of role "model".${reason}`,
    { cause, publicMessage: `Model "${model}" failed: its answer has the wrong form.` },
  );
}
