import * as v from 'valibot';
import type { JsonObject } from '../../core/json/json.ts';
import { defined } from '../../core/json/json.ts';
import { badRequest } from './errors.ts';
import {
  type CreateRequest,
  effort,
  flag,
  jsonSchemaObject,
  metadata,
  ratio,
  tokens,
} from './shapes.ts';

const content = v.nullish(v.union([v.string(), v.array(v.looseObject({ type: v.string() }))]));

const toolCall = v.looseObject({
  id: v.string(),
  type: v.optional(v.string()),
  function: v.optional(v.looseObject({ name: v.string(), arguments: v.string() })),
});

const chatMessage = v.looseObject({
  role: v.string(),
  content,
  refusal: v.nullish(v.string()),
  tool_calls: v.nullish(v.array(toolCall)),
  tool_call_id: v.nullish(v.string()),
});
export type ChatMessage = v.InferOutput<typeof chatMessage>;

const functionTool = v.looseObject({
  type: v.string(),
  function: v.optional(
    v.looseObject({
      name: v.string(),
      description: v.nullish(v.string()),
      parameters: v.nullish(jsonSchemaObject),
    }),
  ),
});

const responseFormat = v.looseObject({
  type: v.string(),
  json_schema: v.optional(
    v.looseObject({ name: v.optional(v.string()), schema: v.optional(jsonSchemaObject) }),
  ),
});

/** The body of `POST /chat/completions`, as far as this server knows it. */
export const chatRequest = v.looseObject({
  model: v.nullish(v.string()),
  messages: v.pipe(v.array(chatMessage), v.minLength(1, 'Expected at least one message')),
  stream: flag,
  stream_options: v.nullish(v.looseObject({ include_usage: flag })),
  store: flag,
  metadata: v.nullish(metadata),
  user: v.nullish(v.string()),
  temperature: ratio(2),
  top_p: ratio(1),
  max_completion_tokens: tokens,
  max_tokens: tokens,
  presence_penalty: ratio(2, -2),
  frequency_penalty: ratio(2, -2),
  seed: v.nullish(v.pipe(v.number(), v.integer())),
  stop: v.nullish(v.union([v.string(), v.pipe(v.array(v.string()), v.maxLength(4))])),
  reasoning_effort: effort,
  tools: v.nullish(v.array(functionTool)),
  tool_choice: v.nullish(
    v.union([
      v.picklist(['auto', 'required', 'none']),
      v.looseObject({ type: v.literal('function'), function: v.object({ name: v.string() }) }),
    ]),
  ),
  response_format: v.nullish(responseFormat),
  prediction: v.optional(v.unknown()),
  verbosity: v.optional(v.unknown()),
});
export type ChatRequest = v.InferOutput<typeof chatRequest>;

/** Values that many clients send, and that ask for nothing which this server does not do. */
const neutral: Readonly<Record<string, string>> = {
  n: '1',
  presence_penalty: '0',
  frequency_penalty: '0',
  logprobs: 'false',
  top_logprobs: '0',
  logit_bias: '{}',
  modalities: '["text"]',
  stop: '[]',
};

/** The same request without what asks for nothing. */
export function withoutNeutral(body: ChatRequest): ChatRequest {
  const asked = Object.entries(body).filter(
    ([name, value]) => !Object.hasOwn(neutral, name) || JSON.stringify(value) !== neutral[name],
  );
  return Object.fromEntries(asked) as ChatRequest;
}

/** The fields that the Responses API has as well, under their names there. */
export function toCreateRequest(body: ChatRequest): CreateRequest {
  const { tool_choice: choice, response_format: format, reasoning_effort: given } = body;
  const named = typeof choice === 'object' && choice ? choice.function.name : undefined;
  const { json_schema: described, ...rest } = format ?? { type: 'text' };
  return {
    model: body.model,
    store: body.store,
    metadata: body.metadata,
    temperature: body.temperature,
    top_p: body.top_p,
    max_output_tokens: body.max_completion_tokens ?? body.max_tokens,
    tools: body.tools?.map(({ type, function: own }, at) => {
      if (type === 'function' && own === undefined) {
        throw badRequest('A tool of type function needs its function.', { param: `tools[${at}]` });
      }
      return { ...own, type };
    }),
    tool_choice: named === undefined ? (choice as 'auto') : { type: 'function', name: named },
    reasoning: given ? { effort: given } : undefined,
    text: format ? { format: { ...rest, ...described, type: rest.type } } : undefined,
  };
}

/** Settings of the model that the Responses API does not have. */
export function samplingOf(body: ChatRequest): JsonObject {
  const { stop } = body;
  return defined({
    presencePenalty: body.presence_penalty ?? undefined,
    frequencyPenalty: body.frequency_penalty ?? undefined,
    seed: body.seed ?? undefined,
    stopSequences: typeof stop === 'string' ? [stop] : (stop ?? undefined),
  });
}

/** The names that fields of a request have in this API, for errors. */
export function chatParam(param: string): string {
  const [name = '', ...rest] = param.split(/(?=[[.])/);
  if (param.startsWith('text.format')) {
    return param
      .replace('text.format', 'response_format')
      .replace('.schema', '.json_schema.schema');
  }
  return [names[name] ?? name, ...rest].join('');
}

const names: Readonly<Record<string, string>> = {
  input: 'messages',
  max_output_tokens: 'max_completion_tokens',
  reasoning: 'reasoning_effort',
};
