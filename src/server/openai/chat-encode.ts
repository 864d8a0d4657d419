import type { Status } from '../../core/error.ts';
import { textSeparator } from './chat-session.ts';
import type { ResponseEvent } from './encode.ts';
import { type OpenAiError, toOpenAiError } from './errors.ts';
import { type Item, snapshotOfResponse, textOfItem } from './items.ts';
import type { ResponseObject } from './response.ts';

/** A chunk of a stream; `done` comes after the last one. */
export type ChatChunk = object | typeof done;
export const done = '[DONE]';

interface ChatEncoderOptions {
  readonly model: string;
  readonly includeUsage: boolean;
  /** Whether only the last text of the answer counts, because it is JSON. */
  readonly isLastOnly: boolean;
}

/** The events of a response as the chunks of a chat completion. */
export class ChatEncoder {
  readonly #options: ChatEncoderOptions;
  #response: ResponseObject | undefined;
  #sent = '';
  #texts = 0;
  #calls = 0;
  #isOver = false;

  constructor(options: ChatEncoderOptions) {
    this.#options = options;
  }

  encode(event: ResponseEvent): readonly ChatChunk[] {
    if (this.#isOver) return [];
    const { type, item, delta } = event;
    switch (type) {
      case 'response.created':
        this.#response = event.response as ResponseObject;
        return [this.#delta({ role: 'assistant', content: '', refusal: null })];
      case 'response.output_item.added':
        if ((item as Item).type !== 'message') return [];
        return this.#texts++ > 0 ? this.#text(textSeparator) : [];
      case 'response.output_text.delta':
        return this.#text(delta as string);
      case 'response.output_item.done':
        return (item as Item).type === 'function_call' ? [this.#call(item as Item)] : [];
      case 'error':
        return this.#fail(event as unknown as OpenAiError);
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
        return this.#end(event.response as ResponseObject);
      default:
        return [];
    }
  }

  #text(content: string): readonly ChatChunk[] {
    if (this.#options.isLastOnly) return [];
    this.#sent += content;
    return [this.#delta({ content })];
  }

  #call(item: Item): ChatChunk {
    return this.#delta({ tool_calls: [{ index: this.#calls++, ...toToolCall(item) }] });
  }

  #end(response: ResponseObject): readonly ChatChunk[] {
    const failure = failureOf(response);
    if (failure) return this.#fail(toOpenAiError(failure));
    const { includeUsage, isLastOnly } = this.#options;
    const { content, finishReason } = toAnswer(response, isLastOnly);
    // Text that another process has replaced cannot be taken back.
    if (!content.startsWith(this.#sent)) return this.#fail(toOpenAiError(replaced));
    const rest = content.slice(this.#sent.length);
    this.#isOver = true;
    return [
      ...(rest === '' ? [] : [this.#delta({ content: rest })]),
      this.#delta({}, finishReason),
      ...(includeUsage ? [{ ...this.#chunk([]), usage: toChatUsage(response) }] : []),
      done,
    ];
  }

  #fail(error: OpenAiError): readonly ChatChunk[] {
    this.#isOver = true;
    const { message, type = 'server_error', param, code } = error;
    return [{ error: { message, type, param, code } }];
  }

  #delta(delta: object, finishReason: string | null = null): object {
    return this.#chunk([{ index: 0, delta, logprobs: null, finish_reason: finishReason }]);
  }

  #chunk(choices: readonly object[]): object {
    const { model, includeUsage } = this.#options;
    const { id = '', created_at: created }: Partial<ResponseObject> = this.#response ?? {};
    const object = 'chat.completion.chunk';
    const usage = includeUsage ? { usage: null } : {};
    return { id: toChatId(id), object, created, model, choices, ...usage };
  }
}

/** A response as a chat completion. */
export function toCompletion(response: ResponseObject, isLastOnly: boolean): object {
  const { id, created_at: created, model } = response;
  const { content, calls, finishReason } = toAnswer(response, isLastOnly);
  const message = {
    role: 'assistant',
    content: content === '' && calls.length > 0 ? null : content,
    refusal: null,
    annotations: [],
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  const choice = { index: 0, message, logprobs: null, finish_reason: finishReason };
  const usage = toChatUsage(response);
  return { id: toChatId(id), object: 'chat.completion', created, model, choices: [choice], usage };
}

/** The failure of a turn, for which the protocol has no response. */
export function failureOf({
  status,
  error,
}: ResponseObject): { readonly status: Status; readonly message: string } | undefined {
  if (status === 'cancelled') return { status: 'CANCELLED', message: 'The turn was aborted.' };
  if (status !== 'failed') return undefined;
  const { code, message } = error as { readonly code: string; readonly message: string };
  return { status: code === 'rate_limit_exceeded' ? 'RESOURCE_EXHAUSTED' : 'INTERNAL', message };
}

const replaced = {
  status: 'UNAVAILABLE',
  message:
    'Another process has taken over the turn, and some of the text that was streamed no longer stands. Send the request again.',
} as const;

function toAnswer(
  { status, output, incomplete_details: details }: ResponseObject,
  isLastOnly: boolean,
) {
  const texts = output.filter(({ type }) => type === 'message').map(textOfItem);
  const calls = output.filter(({ type }) => type === 'function_call').map(toToolCall);
  const content = isLastOnly ? (texts.at(-1) ?? '') : texts.join(textSeparator);
  const { reason } = (details ?? {}) as { readonly reason?: string };
  const cut = reason === 'content_filter' ? 'content_filter' : 'length';
  const ended = calls.length > 0 ? 'tool_calls' : 'stop';
  return { content, calls, finishReason: status === 'incomplete' ? cut : ended };
}

function toToolCall({ call_id: id, name, arguments: args }: Item): object {
  return { id, type: 'function', function: { name, arguments: args } };
}

function toChatId(responseId: string): string {
  return `chatcmpl-${snapshotOfResponse(responseId) ?? responseId}`;
}

interface ResponseUsage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly total_tokens: number;
  readonly input_tokens_details: object;
  readonly output_tokens_details: object;
}

function toChatUsage({ usage }: ResponseObject): object {
  const given = usage as ResponseUsage | undefined;
  return {
    prompt_tokens: given?.input_tokens ?? 0,
    completion_tokens: given?.output_tokens ?? 0,
    total_tokens: given?.total_tokens ?? 0,
    prompt_tokens_details: { audio_tokens: 0, ...given?.input_tokens_details },
    completion_tokens_details: { audio_tokens: 0, ...given?.output_tokens_details },
  };
}
