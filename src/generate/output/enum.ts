import type { Json } from '../../core/json/json.ts';
import type { JsonSchema } from '../../core/schema/schema.ts';
import type { OutputFormat } from './format.ts';

/** One of some given texts, said as it is. */
export const enumFormat: OutputFormat = {
  name: 'enum',
  request: () => ({ format: 'enum' }),
  instructions: (schema) =>
    `Answer with exactly one of these values and nothing else:\n${valuesOf(schema).join('\n')}`,
  parse: read,
  parsePartial: () => undefined,
};

// Models like to quote a value, or to end it like a sentence.
function read(text: string): Json {
  return text.trim().replace(/^["'`]+|["'`.]+$/g, '');
}

function valuesOf(schema: JsonSchema | undefined): readonly unknown[] {
  const values = schema?.enum ?? (schema && 'const' in schema ? [schema.const] : []);
  return Array.isArray(values) ? values : [];
}
