import { abortError } from '../../core/async/signal.ts';
import { defined, type Json, type JsonObject } from '../../core/json/json.ts';
import type { Part } from '../../protocol/message.ts';
import type { FinishReason, Usage } from '../../protocol/turn.ts';
import type { ModelCall, ModelResponse } from '../model.ts';
import { ContentBuilder, toPart, withProvider } from './content.ts';
import { badStream, fromProviderError } from './errors.ts';
import type { ProviderOptions, StreamPart, Tokens } from './types.ts';

type Finish = Extract<StreamPart, { type: 'finish' }>;

/** Reads a model's stream to its end, hands its pieces out as they come, and gives the whole answer. */
export async function readStream(
  stream: ReadableStream<unknown>,
  model: string,
  call: ModelCall,
): Promise<ModelResponse> {
  const { signal } = call;
  const reader = stream.getReader();
  // Cancelling ends a read that is under way, so no single read has to watch the signal.
  const onAbort = (): void => {
    reader.cancel(signal.reason).catch(() => {});
  };
  signal.addEventListener('abort', onAbort);
  const answer = new Answer(model);
  let ended = false;
  try {
    while (!answer.finish) {
      const { value, done } = await reader.read();
      if (signal.aborted) throw abortError(signal);
      if (done) {
        ended = true;
        break;
      }
      // By the specification these are stream parts; what has another type is passed over.
      const piece = answer.take(value as StreamPart);
      if (piece) {
        const wait = call.stream({ content: [piece] });
        if (wait !== undefined) await wait;
      }
    }
  } catch (error) {
    if (signal.aborted) throw abortError(signal);
    throw fromProviderError(error, model);
  } finally {
    signal.removeEventListener('abort', onAbort);
    if (!ended) reader.cancel().catch(() => {});
  }
  return answer.toResponse();
}

// A notice of one provider that an answer begins; it has no content, and the provider does not want it back.
const messageStart = 'anthropic.message_start';

/** The answer that the parts of a stream add up to. */
class Answer {
  readonly #model: string;
  readonly #content = new ContentBuilder();
  #warnings: readonly Json[] = [];
  #metadata: JsonObject = {};
  finish: Finish | undefined;

  constructor(model: string) {
    this.#model = model;
  }

  /** Adds a part; returns what is new for a reader. */
  take(part: StreamPart): Part | undefined {
    switch (part.type) {
      case 'text-delta':
        this.#content.append('text', part.id, part.delta, part.providerMetadata);
        return part.delta === '' ? undefined : { text: part.delta };
      case 'reasoning-delta':
        this.#content.append('reasoning', part.id, part.delta, part.providerMetadata);
        return part.delta === '' ? undefined : { reasoning: part.delta };
      case 'text-start':
      case 'reasoning-start':
        this.#content.append(kindOf(part), part.id, '', part.providerMetadata);
        return undefined;
      case 'text-end':
      case 'reasoning-end':
        this.#content.end(kindOf(part), part.id, part.providerMetadata, part.citations);
        return undefined;
      case 'tool-call':
        return this.#content.add(this.#toolRequest(part));
      case 'tool-result':
        return part.preliminary ? undefined : this.#content.add(toolResponse(part));
      case 'custom':
        return part.kind === messageStart ? undefined : this.#content.add(toPart(part));
      case 'file':
      case 'reasoning-file':
      case 'source':
        return this.#content.add(toPart(part));
      case 'stream-start':
        this.#warnings = (part.warnings ?? []) as readonly Json[];
        return undefined;
      case 'response-metadata':
        this.#metadata = {
          ...this.#metadata,
          ...defined({ responseId: part.id, responseModel: part.modelId }),
        };
        return undefined;
      case 'finish':
        this.finish = part;
        return undefined;
      case 'error':
        throw fromProviderError(part.error, this.#model);
      default:
        // Raw chunks, pings, tool input as it grows, and whatever a later version brings.
        return undefined;
    }
  }

  toResponse(): ModelResponse {
    const { finish } = this;
    if (!finish) {
      throw badStream(this.#model, 'broke its answer off: the stream ended without a finish.');
    }
    const { providerMetadata } = finish;
    return {
      message: { role: 'model', content: this.#content.toParts() },
      finishReason: this.#finishReason(finish),
      metadata: { ...this.#metadata, ...defined({ providerMetadata }) },
      ...defined({ usage: toUsage(finish) }),
      ...(this.#warnings.length > 0 && { warnings: this.#warnings }),
    };
  }

  #toolRequest(part: Extract<StreamPart, { type: 'tool-call' }>): Part {
    const { toolName: name, toolCallId: ref, providerMetadata } = part;
    const input = this.#toolInput(name, part.input);
    const metadata = {
      ...(part.providerExecuted && { providerExecuted: true }),
      ...(providerMetadata && withProvider(undefined, providerMetadata)),
    };
    const toolRequest = { name, ref, input };
    return Object.keys(metadata).length > 0 ? { toolRequest, metadata } : { toolRequest };
  }

  #toolInput(tool: string, input: unknown): Json {
    // Already JSON from a model that does not follow the specification to the letter; checked with the message.
    if (typeof input !== 'string') return (input ?? {}) as Json;
    // A call without arguments comes as an empty text from some providers.
    if (input.trim() === '') return {};
    try {
      return JSON.parse(input) as Json;
    } catch (cause) {
      const problem = `sent arguments for tool "${tool}" that are not JSON: ${input.slice(0, 200)}`;
      const publicProblem = `sent arguments for tool "${tool}" that are not JSON.`;
      throw badStream(this.#model, problem, { status: 'INTERNAL', cause, publicProblem });
    }
  }

  #finishReason({ finishReason = 'unknown' }: Finish): FinishReason {
    const { unified, raw } =
      typeof finishReason === 'string'
        ? { unified: finishReason, raw: finishReason }
        : finishReason;
    if (unified === 'interrupted') {
      throw badStream(this.#model, 'broke its answer off before it was complete.');
    }
    if (unified === 'error') {
      throw badStream(this.#model, `ended with an error (${raw ?? 'no reason given'}).`, {
        publicProblem: 'ended with an error.',
      });
    }
    return finishReasons.get(unified) ?? 'unknown';
  }
}

const finishReasons: ReadonlyMap<string, FinishReason> = new Map([
  ['stop', 'stop'],
  ['tool-calls', 'stop'],
  ['length', 'length'],
  ['content-filter', 'blocked'],
  ['other', 'other'],
]);

function kindOf({ type }: StreamPart): 'text' | 'reasoning' {
  return type.startsWith('text') ? 'text' : 'reasoning';
}

function toolResponse(part: Extract<StreamPart, { type: 'tool-result' }>): Part {
  const { toolName: name, toolCallId: ref, result, isError, providerMetadata } = part;
  return {
    // A result is JSON by its specification; checked with the whole message.
    toolResponse: { name, ref, output: (result ?? null) as Json },
    metadata: {
      providerExecuted: true,
      ...(isError && { error: { status: 'UNKNOWN' } }),
      ...(providerMetadata && withProvider(undefined, providerMetadata)),
    },
  };
}

/** The tokens of a model call, whatever version of the specification counted them. */
function toUsage({ usage, providerMetadata }: Finish): Usage | undefined {
  if (!usage) return undefined;
  const given = totalOf(usage.inputTokens);
  const outputTokens = totalOf(usage.outputTokens);
  const reasoningTokens = usage.reasoningTokens ?? breakdown(usage.outputTokens)?.reasoning;
  const cachedInputTokens = usage.cachedInputTokens ?? breakdown(usage.inputTokens)?.cacheRead;
  const written = typeof usage.inputTokens === 'number' ? writtenIn(providerMetadata) : undefined;
  const cacheWriteTokens = written ?? breakdown(usage.inputTokens)?.cacheWrite;
  const inputTokens =
    written === undefined ? given : sum(given, written + (cachedInputTokens ?? 0));
  const counted = written === undefined ? usage.totalTokens : undefined;
  const totalTokens = counted ?? sum(inputTokens, outputTokens);
  return defined({
    inputTokens,
    outputTokens,
    totalTokens,
    reasoningTokens,
    cachedInputTokens,
    cacheWriteTokens,
  });
}

/** Tokens written to the cache, which v2 has only in the metadata of a provider. Its input is what was neither read nor written. */
function writtenIn({ anthropic, bedrock }: ProviderOptions = {}): number | undefined {
  const { cacheWriteInputTokens } = (bedrock?.usage ?? {}) as Record<string, unknown>;
  const written = anthropic?.cacheCreationInputTokens ?? cacheWriteInputTokens;
  return typeof written === 'number' ? written : undefined;
}

function totalOf(tokens: Tokens): number | undefined {
  return typeof tokens === 'number' ? tokens : tokens?.total;
}

function breakdown(tokens: Tokens): Exclude<Tokens, number> {
  return typeof tokens === 'number' ? undefined : tokens;
}

function sum(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined && b === undefined ? undefined : (a ?? 0) + (b ?? 0);
}
