import { invalid, isWaymarkError, messageOf, WaymarkError } from '../../core/error.ts';
import { defined, isJsonArray, isJsonObject, type Json } from '../../core/json/json.ts';
import { checkOptions, kindOf, type OptionNames } from '../../core/options.ts';
import { type JsonSchema, parse, type Schema, toJsonSchema } from '../../core/schema/schema.ts';
import type { ModelRequest } from '../model.ts';
import { findJson, findPartialJson } from './find-json.ts';

/** A way in which an answer can be structured: the instructions for the model, and how its text is parsed. */
export interface OutputFormat {
  readonly name: OutputFormatName;
  /** The request to a model that constrains its output itself. */
  request(schema: JsonSchema | undefined): ModelRequest['output'];
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
function badOutput(format: string, text: string, problem: string, cause?: unknown): WaymarkError {
  const shown = text.length > 200 ? `${text.slice(0, 200)}…` : text;
  return new WaymarkError(
    'UNAVAILABLE',
    `The model was asked for ${format} output, but its answer ${problem}. The answer: ${JSON.stringify(shown)}. Send the message again, or use a model with structured output.`,
    {
      details: { format, retryable: true },
      cause,
      // The answer is content, which an agent may hide from its callers.
      publicMessage: `The model was asked for ${format} output, but its answer does not have that form. Send the message again, or use a model with structured output.`,
    },
  );
}

function fitting(what: 'It' | 'Each', schema: unknown): string {
  return schema ? ` ${what} must fit this JSON Schema:\n${JSON.stringify(schema)}` : '';
}

const textFormat: OutputFormat = {
  name: 'text',
  request: () => undefined,
  instructions: () => undefined,
  parse: (text) => text,
  parsePartial: (text) => text,
};

const jsonFormat: OutputFormat = {
  name: 'json',
  request: (schema) => ({
    format: 'json',
    contentType: 'application/json',
    ...defined({ schema }),
  }),
  instructions: (schema) => `Answer with JSON only, without a code fence.${fitting('It', schema)}`,
  parse(text) {
    const value = findJson(text);
    if (value === undefined) throw badOutput('json', text, 'holds no complete JSON');
    return value;
  },
  parsePartial: (text) => findPartialJson(text)?.value,
};

/** A JSON array; while it grows, the elements that are complete. */
const arrayFormat: OutputFormat = {
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
    `Answer with a JSON array only, without a code fence.${fitting('It', schema)}`,
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
const jsonlFormat: OutputFormat = {
  name: 'jsonl',
  request: () => ({ format: 'jsonl' }),
  instructions: (schema) =>
    `Answer with JSON values only, one on each line, without a code fence and without an array around them.${fitting('Each', schema?.items)}`,
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

const enumFormat: OutputFormat = {
  name: 'enum',
  request: () => ({ format: 'enum' }),
  instructions: (schema) =>
    `Answer with exactly one of these values and nothing else:\n${valuesOf(schema).join('\n')}`,
  // Models like to quote a value, or to end it like a sentence.
  parse: (text) => text.trim().replace(/^["'`]+|["'`.]+$/g, ''),
  parsePartial: () => undefined,
};

function valuesOf(schema: JsonSchema | undefined): readonly unknown[] {
  const values = schema?.enum ?? (schema && 'const' in schema ? [schema.const] : []);
  return Array.isArray(values) ? values : [];
}

/** How an answer should be structured. */
interface OutputOptions<S extends Schema | undefined = Schema | undefined> {
  /** The schema of the whole output; it determines the type of the output. */
  readonly schema?: S;
  /** @default depends on the schema: `array`, `enum` or `json`; without a schema `text` */
  readonly format?: OutputFormatName;
  /**
   * Instructions about the format: your own text, or `false` for none.
   * @default true: generated, unless the model has native structured output
   */
  readonly instructions?: boolean | string;
}

/** The `output` of a call or definition: its options, or only the schema. */
export type OutputSetting<S extends Schema | undefined = Schema | undefined> =
  | OutputOptions<S>
  | S
  | undefined;

/** The options of an output; a schema alone is its short form. */
export function outputOptionsOf(output: NonNullable<OutputSetting>): OutputOptions {
  if (typeof output === 'function' || (typeof output === 'object' && '~standard' in output)) {
    return { schema: output as Schema };
  }
  if (typeof output !== 'object') {
    throw invalid(`\`output\` must be a schema or { schema, format }, and is ${kindOf(output)}.`);
  }
  const isJsonSchema = !('schema' in output) && schemaKeywords.some((word) => word in output);
  if (isJsonSchema) return { schema: output as JsonSchema };
  checkOptions(output, optionNames, '`output`');
  return output as OutputOptions;
}

const optionNames: OptionNames<OutputOptions> = { schema: true, format: true, instructions: true };

/** Keywords that distinguish a JSON Schema from options. */
const schemaKeywords = [
  'type',
  'properties',
  'items',
  'enum',
  'const',
  'anyOf',
  'oneOf',
  'allOf',
  '$ref',
];

/** The output of one call: what the model is asked, and how its answer is read. */
export interface ResolvedOutput {
  readonly format: OutputFormat;
  readonly jsonSchema: JsonSchema | undefined;
  readonly schema: Schema | undefined;
  readonly instructions: boolean | string;
}

const formats: Readonly<Record<OutputFormatName, OutputFormat>> = {
  text: textFormat,
  json: jsonFormat,
  array: arrayFormat,
  enum: enumFormat,
  jsonl: jsonlFormat,
};

const plainText: ResolvedOutput = {
  format: textFormat,
  jsonSchema: undefined,
  schema: undefined,
  instructions: false,
};

/** Output options as one call uses them; a format or schema that cannot be used is INVALID_ARGUMENT. */
export function resolveOutput(given: OutputSetting): ResolvedOutput {
  if (given === undefined) return plainText;
  const options = outputOptionsOf(given);
  const { schema, instructions = true } = options;
  const jsonSchema = schema && toJsonSchema(schema, 'input');
  const name = options.format ?? formatFor(jsonSchema);
  const format = formats[name];
  if (!format) {
    throw invalid(
      `There is no output format "${name}"; there is ${Object.keys(formats).join(', ')}.`,
    );
  }
  return { format, jsonSchema, schema, instructions };
}

export function instructionsOf(
  { format, jsonSchema, instructions }: ResolvedOutput,
  constrainsOutput: boolean,
): string | undefined {
  if (typeof instructions === 'string') return instructions;
  if (!instructions) return undefined;
  // Without a schema there is nothing to constrain: at least one provider then wants to read the word JSON.
  const isConstrained = constrainsOutput && jsonSchema && format.request(jsonSchema)?.schema;
  return isConstrained ? undefined : format.instructions(jsonSchema);
}

/** The output that a whole answer holds, checked; UNAVAILABLE if it does not have the format or does not fit the schema. */
export async function parseOutput(
  { format, schema }: ResolvedOutput,
  text: string,
): Promise<unknown> {
  const value = format.parse(text);
  if (!schema) return value;
  try {
    return await parse(schema, value, 'The answer');
  } catch (cause) {
    // Another answer would not help.
    if (isWaymarkError(cause) && cause.status === 'RESOURCE_EXHAUSTED') throw cause;
    const reason = messageOf(cause).replace(/^The answer does not fit its schema\.\s*/, '');
    const problem = `does not fit the schema (${reason.replace(/\.$/, '')})`;
    throw badOutput(format.name, text, problem, cause);
  }
}

function formatFor(jsonSchema: JsonSchema | undefined): OutputFormatName {
  if (!jsonSchema) return 'text';
  if (jsonSchema.type === 'array') return 'array';
  return Array.isArray(jsonSchema.enum) && jsonSchema.type === 'string' ? 'enum' : 'json';
}
