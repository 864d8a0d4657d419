import { throwIfAborted } from '../../core/async/signal.ts';
import { messageOf, toErrorBody, WaymarkError } from '../../core/error.ts';
import { defined } from '../../core/json/json.ts';
import { hasMetrics, recordValue } from '../../core/metrics.ts';
import { inSpan, type Span, type SpanAttributes } from '../../core/trace.ts';
import { genAi, attributes as names, operations } from '../../core/trace-names.ts';
import type { Message, Part } from '../../protocol/message.ts';
import { parseMessage } from '../../protocol/parse.ts';
import { callProbe, generateScope } from '../hooks.ts';
import { fromProviderError } from '../language-model/errors.ts';
import type { Model, ModelCall, ModelRequest, ModelResponse } from '../model.ts';
import { pricedUsage, tracedModel, tracedUsage, withExpectedCache } from './price.ts';

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
      const watched = watch?.watched(call) ?? call;
      const run = (): Promise<ModelResponse> => model.run(request, watched);
      const probe = callProbe.get();
      const answer = await (probe?.model({ model, request, ...watched }, run) ?? run());
      const parsed = parseResponse(answer, model.name);
      const usage = pricedUsage(model, withExpectedCache(parsed.usage, request));
      const response = { ...parsed, ...defined({ usage }) };
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

function labelsOf(model: Model): Record<string, string | undefined> {
  const { id, provider } = tracedModel(model);
  return {
    [genAi.operation]: operations.chat,
    [genAi.requestModel]: id,
    [genAi.provider]: provider,
  };
}

/** The attributes of a model call that are known before it is made. */
function requestAttributes(model: Model, { config, output }: ModelRequest): SpanAttributes {
  return {
    ...labelsOf(model),
    [genAi.temperature]: config?.temperature,
    [genAi.topP]: config?.topP,
    [genAi.topK]: config?.topK,
    [genAi.maxTokens]: config?.maxOutputTokens,
    [genAi.frequencyPenalty]: config?.frequencyPenalty,
    [genAi.presencePenalty]: config?.presencePenalty,
    [genAi.stopSequences]: config?.stopSequences,
    [genAi.seed]: config?.seed,
    [genAi.reasoning]: config?.reasoning,
    [genAi.outputType]: output?.contentType === 'application/json' ? 'json' : undefined,
  };
}

/** Measures a model call for its span and the metrics; does nothing without a listener. */
class ModelWatch {
  readonly #model: Model;
  readonly #span: Span;
  readonly #startedAt = performance.now();
  #firstChunk: number | undefined;

  constructor(model: Model, span: Span) {
    this.#model = model;
    this.#span = span;
  }

  /** The same call, which notes when the first chunk comes. */
  watched(call: ModelCall): ModelCall {
    return {
      signal: call.signal,
      context: call.context,
      stream: (chunk) => {
        this.#firstChunk ??= this.#elapsed();
        return call.stream(chunk);
      },
    };
  }

  answered({ messages }: ModelRequest, response: ModelResponse): void {
    const { finishReason, usage, metadata } = response;
    const { responseId, responseModel } = metadata ?? {};
    const named = typeof responseModel === 'string' ? { [genAi.responseModel]: responseModel } : {};
    this.#span.setAttributes({
      [genAi.finishReasons]: [finishReason],
      ...tracedUsage(usage),
      [genAi.timeToFirstChunk]: this.#firstChunk,
      ...(typeof responseId === 'string' && { [genAi.responseId]: responseId }),
      ...named,
    });
    this.#showContent(messages, response);
    if (!hasMetrics()) return;
    const labels = { ...labelsOf(this.#model), ...named };
    recordValue('gen_ai.client.operation.duration', this.#elapsed(), labels);
    for (const [type, tokens] of [
      ['input', usage?.inputTokens],
      ['output', usage?.outputTokens],
    ] as const) {
      if (tokens === undefined) continue;
      recordValue('gen_ai.client.token.usage', tokens, { ...labels, [genAi.tokenType]: type });
    }
    if (this.#firstChunk !== undefined) {
      recordValue('gen_ai.client.operation.time_to_first_chunk', this.#firstChunk, labels);
    }
  }

  failed(error: unknown): void {
    const labels = { ...labelsOf(this.#model), [names.errorType]: toErrorBody(error).status };
    recordValue('gen_ai.client.operation.duration', this.#elapsed(), labels);
  }

  // Only with `telemetry.content`, and only what the agent's transform lets out.
  #showContent(messages: readonly Message[], { message, finishReason }: ModelResponse): void {
    const show = generateScope.get()?.hooks?.showMessages;
    if (show === undefined || !this.#span.recording) return;
    const answer = tracedMessages(show([message])).map((each) => ({
      ...each,
      finish_reason: finishReason,
    }));
    this.#span.setAttributes({
      [genAi.inputMessages]: JSON.stringify(tracedMessages(show(messages))),
      [genAi.outputMessages]: JSON.stringify(answer),
    });
  }

  #elapsed(): number {
    return (performance.now() - this.#startedAt) / 1000;
  }
}

/** Messages in the form that the GenAI conventions give them. */
function tracedMessages(messages: readonly Message[]) {
  return messages.map(({ role, content }) => ({
    role: role === 'model' ? 'assistant' : role,
    parts: content.flatMap(tracedPart),
  }));
}

function tracedPart(part: Part): object[] {
  if ('text' in part) return [{ type: 'text', content: part.text }];
  if ('reasoning' in part) return [{ type: 'reasoning', content: part.reasoning }];
  if ('toolRequest' in part) {
    const { name, ref, input } = part.toolRequest;
    return [{ type: 'tool_call', id: ref ?? null, name, arguments: input ?? null }];
  }
  if ('toolResponse' in part) {
    const { ref, output } = part.toolResponse;
    return [{ type: 'tool_call_response', id: ref ?? null, response: output ?? null }];
  }
  if ('media' in part) {
    const { url, contentType } = part.media;
    // The data of a file is not part of a trace.
    const uri = url.startsWith('data:') ? null : url;
    return [{ type: 'uri', mime_type: contentType ?? null, uri }];
  }
  return [];
}
