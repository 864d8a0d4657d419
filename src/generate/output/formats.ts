import { WaymarkError } from '../../core/error.ts';
import { isJsonArray, isJsonObject, type Json } from '../../core/json/json.ts';
import type { JsonSchema } from '../../core/schema/schema.ts';
import type { OutputRequest } from '../model.ts';
import { findJson, findPartialJson } from './find-json.ts';

/** A way in which an answer can be structured: the instructions for the model, and how its text is parsed. */
export interface OutputFormat {
  readonly name: OutputFormatName;
  /** What a model that constrains its output itself is asked for. */
  request(schema: JsonSchema | undefined): OutputRequest | undefined;
  /** The instructions for a model that does not. */
  instructions(schema: JsonSchema | undefined): string | undefined;
  /** Reads a whole answer; UNAVAILABLE if it does not have the format. */
  parse(text: string): Json;
  /** Reads an answer that is still growing; `undefined` while there is nothing to say. */
  parsePartial(text: string): Json | undefined;
}

/** The ways in which an answer can be structured. */
export type OutputFormatName = 'text' | 'json' | 'array' | 'enum' | 'jsonl';

/**
 * The error for an answer that does not have the format it was asked for. The model failed, not the code around it, and may
 * answer correctly when it is asked again.
 */
export function badOutput(
  format: string,
  text: string,
  problem: string,
  cause?: unknown,
): WaymarkError {
  const shown = text.length > 200 ? `${text.slice(0, 200)}…` : text;
  return new WaymarkError(
    'UNAVAILABLE',
    `The model was asked for ${format} output, but its answer ${problem}. The answer: ${JSON.stringify(shown)}. Send the message again, or use a model with structured output.`,
    {
      details: { format, retryable: true },
      cause,
      // What the model said is content, which an agent may hide from its callers.
      publicMessage: `The model was asked for ${format} output, but its answer does not have that form. Send the message again, or use a model with structured output.`,
    },
  );
}

/** The answer as it is. */
export const textFormat: OutputFormat = {
  name: 'text',
  request: () => undefined,
  instructions: () => undefined,
  parse: (text) => text,
  parsePartial: (text) => text,
};

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

/** One JSON value a line, which makes an array; while it grows, the lines that are complete. */
export const jsonlFormat: OutputFormat = {
  name: 'jsonl',
  request: () => ({ format: 'jsonl' }),
  instructions: (schema) => {
    const items = itemSchema(schema);
    const fit = items ? ` Each must fit this JSON Schema:\n${JSON.stringify(items)}` : '';
    return `Answer with JSON values only, one on each line, without a code fence and without an array around them.${fit}`;
  },
  parse: (text) => linesOf(text).map((line) => readLine(line, text)),
  parsePartial(text) {
    const end = text.lastIndexOf('\n');
    if (end < 0) return [];
    return linesOf(text.slice(0, end)).flatMap((line) => {
      try {
        return [JSON.parse(line) as Json];
      } catch {
        return [];
      }
    });
  },
};

function linesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('```'));
}

function readLine(line: string, text: string): Json {
  try {
    return JSON.parse(line) as Json;
  } catch (cause) {
    throw badOutput('jsonl', text, `has a line that is not JSON (${line.slice(0, 80)})`, cause);
  }
}

function itemSchema(schema: JsonSchema | undefined): unknown {
  return schema?.items;
}

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
