import * as v from 'valibot';
import { readLimit, short } from '../http/answer.ts';
import type { RequestContext } from '../http/server-context.ts';
import { badRequest, unknownId } from './errors.ts';
import type { Item } from './items.ts';

/** An item of an input. What it needs besides its type is checked where it is read. */
const item = v.looseObject({
  type: v.optional(v.string()),
  id: v.optional(v.nullable(v.string())),
  role: v.optional(v.string()),
  content: v.nullish(v.union([v.string(), v.array(v.looseObject({ type: v.string() }))])),
});
export type InputItem = v.InferOutput<typeof item>;

/** At most 16 pairs, with keys of 64 and values of 512 characters. */
export const metadata = v.pipe(
  v.record(
    v.pipe(v.string(), v.maxLength(64, 'Keys of metadata have at most 64 characters')),
    v.pipe(v.string(), v.maxLength(512, 'Values of metadata have at most 512 characters')),
  ),
  v.check((given) => Object.keys(given).length <= 16, 'Metadata has at most 16 keys'),
);

export const jsonSchemaObject = v.record(v.string(), v.unknown());

const functionTool = v.looseObject({
  type: v.string(),
  name: v.optional(v.string()),
  description: v.nullish(v.string()),
  parameters: v.nullish(jsonSchemaObject),
});
export type FunctionTool = v.InferOutput<typeof functionTool>;

const textConfig = v.looseObject({
  format: v.optional(
    v.looseObject({
      type: v.string(),
      name: v.optional(v.string()),
      schema: v.optional(jsonSchemaObject),
    }),
  ),
  verbosity: v.nullish(v.string()),
});

const toolChoice = v.union([
  v.picklist(['auto', 'required', 'none']),
  v.looseObject({ type: v.literal('function'), name: v.string() }),
]);
export type ToolChoiceField = v.InferOutput<typeof toolChoice>;

export const effort = v.nullish(v.picklist(['none', 'minimal', 'low', 'medium', 'high', 'xhigh']));

/** The summary of the reasoning is always part of the output. */
const reasoning = v.looseObject({
  effort,
});

export const flag = v.nullish(v.boolean());

export const ratio = (most: number, least = 0) =>
  v.nullish(v.pipe(v.number(), v.minValue(least), v.maxValue(most)));
export const tokens = v.nullish(v.pipe(v.number(), v.integer(), v.minValue(1)));

/** The body of `POST /responses`, as far as this server knows it. */
export const createRequest = v.looseObject({
  model: v.nullish(v.string()),
  input: v.nullish(v.union([v.string(), v.array(item)])),
  instructions: v.nullish(v.string()),
  previous_response_id: v.nullish(v.string()),
  conversation: v.nullish(v.union([v.string(), v.object({ id: v.string() })])),
  background: flag,
  stream: flag,
  store: flag,
  metadata: v.nullish(metadata),
  temperature: ratio(2),
  top_p: ratio(1),
  max_output_tokens: tokens,
  tools: v.nullish(v.array(functionTool)),
  tool_choice: v.nullish(toolChoice),
  reasoning: v.nullish(reasoning),
  text: v.nullish(textConfig),
});
export type CreateRequest = v.InferOutput<typeof createRequest>;

/** The body of `POST /conversations`. */
export const conversationRequest = v.object({
  items: v.nullish(v.pipe(v.array(item), v.maxLength(20, 'At most 20 items at a time'))),
  metadata: v.nullish(metadata),
});

/** The body of `POST /conversations/:id`. */
export const conversationChange = v.object({ metadata: v.nullable(metadata) });

/** The body of `POST /conversations/:id/items`. */
export const itemsRequest = v.object({
  items: v.pipe(
    v.array(item),
    v.minLength(1, 'Expected at least one item'),
    v.maxLength(20, 'At most 20 items at a time'),
  ),
});

/** A page of items, given oldest first: `order` (newest first by default), `limit` and `after` as the query says. */
export function pageOf(c: RequestContext, items: readonly Item[]): object {
  const order = c.req.query('order') ?? 'desc';
  if (order !== 'asc' && order !== 'desc') {
    throw badRequest(`order must be asc or desc, not ${short(order)}.`, { param: 'order' });
  }
  const wrong = { code: 'invalid_value', param: 'limit' };
  const limit = readLimit(c.req.query('limit'), 100, wrong) ?? 20;
  const sorted = order === 'asc' ? items : items.toReversed();
  const after = c.req.query('after');
  const from = after === undefined ? 0 : sorted.findIndex(({ id }) => id === after) + 1;
  if (after !== undefined && from === 0) {
    throw unknownId(`There is no item ${short(after)} here.`, 'item_not_found', 'after');
  }
  return listOf(sorted.slice(from, from + limit), from + limit < sorted.length);
}

export function listOf(data: readonly Item[], isMore: boolean): object {
  const [first] = data;
  const last = data.at(-1);
  return {
    object: 'list',
    data,
    first_id: first?.id ?? null,
    last_id: last?.id ?? null,
    has_more: isMore,
  };
}
