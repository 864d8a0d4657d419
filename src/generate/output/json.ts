import { findJson, findPartialJson } from './find-json.ts';
import { badOutput, type OutputFormat } from './format.ts';

/** One JSON value. */
export const jsonFormat: OutputFormat = {
  name: 'json',
  request: (schema) => ({
    format: 'json',
    contentType: 'application/json',
    ...(schema && { schema }),
  }),
  instructions: (schema) =>
    schema
      ? `Answer with JSON only, without a code fence. It must fit this JSON Schema:\n${JSON.stringify(schema)}`
      : 'Answer with JSON only, without a code fence.',
  parse(text) {
    const value = findJson(text);
    if (value === undefined) throw badOutput('json', text, 'holds no complete JSON');
    return value;
  },
  parsePartial: (text) => findPartialJson(text)?.value,
};
