import * as v from 'valibot';
import type { ErrorBody } from '../../core/error.ts';
import type { JsonObject } from '../../core/json/json.ts';
import type { Message } from '../../protocol/message.ts';
import type { FinishReason, Usage } from '../../protocol/turn.ts';
import { createdAt, type Item, inputMessage, toResponseId } from './items.ts';

/** The key of a message's metadata under which the request that brought it is kept. */
const requestKey = 'openai';

/** The fields of a request that its response repeats, and that are stored with the message. */
const storedRequest = v.object({
  metadata: v.optional(v.record(v.string(), v.string())),
  instructions: v.optional(v.string()),
  previous_response_id: v.optional(v.string()),
  conversation: v.optional(v.object({ id: v.string() })),
  background: v.optional(v.boolean()),
  temperature: v.optional(v.number()),
  top_p: v.optional(v.number()),
  max_output_tokens: v.optional(v.number()),
});
export interface StoredRequest extends v.InferOutput<typeof storedRequest> {}

/** As far as a response repeats its request. What concerns this call only is repeated, but not stored. */
export interface RequestEcho extends StoredRequest {
  readonly tools?: readonly unknown[];
  readonly store?: boolean;
  readonly text?: unknown;
  readonly tool_choice?: unknown;
  readonly reasoning?: unknown;
}

/** The metadata that a message of a request is stored with. */
export function requestMetadata(request: StoredRequest): JsonObject | undefined {
  if (Object.keys(request).length === 0) return undefined;
  return { [requestKey]: { ...request } as JsonObject };
}

/** The request that brought the message of a turn, if it was one of this protocol. */
export function requestOf(messages: readonly Message[]): StoredRequest {
  const message = messages[inputMessage(messages)];
  const parsed = v.safeParse(storedRequest, message?.metadata?.[requestKey]);
  return parsed.success ? parsed.output : {};
}

export interface ResponseSubject {
  readonly snapshotId: string;
  readonly model: string;
  readonly echo: RequestEcho;
}

export interface ResponseProgress {
  readonly status: ResponseStatus;
  readonly output: readonly Item[];
  readonly usage?: Usage | undefined;
  readonly error?: (Pick<ErrorBody, 'message'> & { readonly status?: string }) | undefined;
  readonly finishReason?: FinishReason | undefined;
}

export type ResponseStatus =
  | 'completed'
  | 'failed'
  | 'in_progress'
  | 'queued'
  | 'cancelled'
  | 'incomplete';

export type ResponseObject = Readonly<Record<string, unknown>> & {
  readonly id: string;
  readonly status: ResponseStatus;
  readonly output: readonly Item[];
};

export function finalStatus(finishReason: FinishReason | undefined): ResponseStatus {
  return (finishReason && finalStatuses[finishReason]) ?? 'completed';
}

const finalStatuses: Partial<Record<FinishReason, ResponseStatus>> = {
  failed: 'failed',
  aborted: 'cancelled',
  length: 'incomplete',
  blocked: 'incomplete',
};

export function toResponse(
  { snapshotId, model, echo }: ResponseSubject,
  { status, output, usage, error, finishReason }: ResponseProgress,
): ResponseObject {
  const isOver = status !== 'in_progress' && status !== 'queued';
  return {
    object: 'response',
    created_at: createdAt(snapshotId),
    model,
    error: status === 'failed' ? toResponseError(error) : null,
    incomplete_details: status === 'incomplete' ? { reason: reasonOf(finishReason) } : null,
    instructions: null,
    parallel_tool_calls: true,
    // The agent's own settings are not shown: without one in the request, these are the defaults of the API.
    temperature: 1,
    top_p: 1,
    presence_penalty: 0,
    frequency_penalty: 0,
    top_logprobs: 0,
    max_tool_calls: null,
    reasoning: null,
    service_tier: 'default',
    store: true,
    user: null,
    safety_identifier: null,
    prompt_cache_key: null,
    completed_at: null,
    tool_choice: 'auto',
    tools: [],
    background: false,
    conversation: null,
    max_output_tokens: null,
    previous_response_id: null,
    text: { format: { type: 'text' } },
    truncation: 'disabled',
    metadata: {},
    ...echo,
    id: toResponseId(snapshotId),
    status,
    output,
    usage: isOver && usage ? toUsage(usage) : null,
  };
}

function reasonOf(finishReason: FinishReason | undefined): string {
  return finishReason === 'blocked' ? 'content_filter' : 'max_output_tokens';
}

function toResponseError(error: ResponseProgress['error']): object {
  const code = error?.status === 'RESOURCE_EXHAUSTED' ? 'rate_limit_exceeded' : 'server_error';
  return { code, message: error?.message ?? 'The turn failed.' };
}

export function toUsage({
  inputTokens = 0,
  outputTokens = 0,
  totalTokens = inputTokens + outputTokens,
  reasoningTokens = 0,
  cachedInputTokens = 0,
  cacheWriteTokens = 0,
}: Usage): object {
  return {
    input_tokens: inputTokens,
    input_tokens_details: {
      cached_tokens: cachedInputTokens,
      cache_write_tokens: cacheWriteTokens,
    },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: totalTokens,
  };
}
