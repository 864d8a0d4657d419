import { isJsonArray, isJsonObject, type Json } from '../../core/json/json.ts';
import { findJson, findPartialJson } from './find-json.ts';
import { badOutput, type OutputFormat } from './format.ts';

/** A JSON array; while it grows, the elements that are complete. */
export const arrayFormat: OutputFormat = {
  name: 'array',
  // Providers that constrain their output want an object at the top, so the array comes in one.
  request: (schema) => ({
    format: 'array',
    contentType: 'application/json',
    ...(schema && {
      schema: {
        type: 'object',
        properties: { items: schema },
        required: ['items'],
        additionalProperties: false,
      },
    }),
  }),
  instructions: (schema) =>
    schema
      ? `Answer with a JSON array only, without a code fence. It must fit this JSON Schema:\n${JSON.stringify(schema)}`
      : 'Answer with a JSON array only, without a code fence.',
  parse(text) {
    const items = itemsOf(findJson(text));
    if (!items) throw badOutput('array', text, 'holds no complete JSON array');
    return items;
  },
  parsePartial(text) {
    const found = findPartialJson(text);
    const items = itemsOf(found?.value);
    if (!found || !items) return undefined;
    // The last element may still be growing.
    return found.complete ? items : items.slice(0, -1);
  },
};

function itemsOf(value: Json | undefined): readonly Json[] | undefined {
  if (isJsonArray(value)) return value;
  const items = isJsonObject(value) ? value.items : undefined;
  return isJsonArray(items) ? items : undefined;
}
