import { isWaymarkError, messageOf, WaymarkError } from '../../core/error.ts';
import { checkOptions, kindOf, type OptionNames } from '../../core/options.ts';
import { type JsonSchema, parse, type Schema, toJsonSchema } from '../../core/schema/schema.ts';
import {
  arrayFormat,
  badOutput,
  enumFormat,
  jsonFormat,
  jsonlFormat,
  type OutputFormat,
  type OutputFormatName,
  textFormat,
} from './formats.ts';

/** How an answer should be structured. */
export interface OutputOptions<S extends Schema | undefined = Schema | undefined> {
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
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      `\`output\` must be a schema or { schema, format }, and is ${kindOf(output)}.`,
    );
  }
  const isJsonSchema = !('schema' in output) && schemaKeywords.some((word) => word in output);
  if (isJsonSchema) return { schema: output as JsonSchema };
  checkOptions(output, optionNames, '`output`');
  return output as OutputOptions;
}

const optionNames: OptionNames<OutputOptions> = { schema: true, format: true, instructions: true };

/** Keywords by which a JSON Schema is told from options. */
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
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      `There is no output format "${name}"; there is ${Object.keys(formats).join(', ')}.`,
    );
  }
  return { format, jsonSchema, schema, instructions };
}

/** The instructions about the output in the prompt. */
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
