import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec';
import { config, type GenericSchema } from 'valibot';
import { invalid, isWaymarkError, type WaymarkError } from '../error.ts';
import { getOrMake } from '../get-or-make.ts';
import { isLarge, type Json, toJson } from '../json/json.ts';
import { toPointer } from '../json/pointer.ts';
import { requireOptional } from '../platform.ts';
import {
  type JsonSchema,
  jsonSchemaIssues,
  parseJsonSchema,
  type SchemaIssue,
} from './json-schema.ts';

export type { JsonSchema } from './json-schema.ts';

/** A schema of zod, valibot, arktype or any other Standard Schema library, or a plain JSON Schema. */
export type Schema<Output = unknown> = StandardSchemaV1<unknown, Output> | JsonSchema;

/** The output type of a schema; `Missing` when there is none. */
export type InferSchema<S, Missing = Json> = S extends StandardSchemaV1
  ? StandardSchemaV1.InferOutput<S>
  : S extends Schema
    ? Json
    : Missing;

/** The input type of a schema; `Missing` when there is none. */
export type InferSchemaInput<S, Missing = Json> = S extends StandardSchemaV1
  ? StandardSchemaV1.InferInput<S>
  : S extends Schema
    ? Json
    : Missing;

/** Validates a value at the boundary; INVALID_ARGUMENT says what is wrong where. A promise only if the schema is asynchronous. */
export function parse<S extends Schema>(
  schema: S,
  value: unknown,
  what: string,
): InferSchema<S> | Promise<InferSchema<S>> {
  const standard = standardOf(schema);
  if (!standard) return checkJsonSchema(schema as JsonSchema, value, what) as InferSchema<S>;
  const result = validatorOf(schema, standard, value).validate(value);
  return result instanceof Promise
    ? result.then((settled) => outputOf(settled, what) as InferSchema<S>)
    : (outputOf(result, what) as InferSchema<S>);
}

// Collecting every issue of a large value takes many times the value's memory. Of the libraries, only valibot can be told
// to stop at the first one.
function validatorOf(schema: Schema, standard: Props, value: unknown): Props {
  if (standard.vendor !== 'valibot' || !isLarge(value)) return standard;
  return config(schema as GenericSchema, { abortEarly: true })['~standard'];
}

/** Like `parse`, for places that cannot wait; an asynchronous schema is INVALID_ARGUMENT. */
export function parseSync<S extends Schema>(
  schema: S,
  value: unknown,
  what: string,
): InferSchema<S> {
  const result = parse(schema, value, what);
  if (!(result instanceof Promise)) return result;
  result.catch(() => {});
  throw invalid(`The schema of ${what} is asynchronous; use one without asynchronous checks here.`);
}

/** The JSON Schema (draft 7) of what a schema takes or gives; INVALID_ARGUMENT if there is none. */
export function toJsonSchema(schema: Schema, direction: Direction = 'input'): JsonSchema {
  return getOrMake(jsonSchemas[direction], schema, () => convert(schema, direction));
}

type Direction = 'input' | 'output';

const jsonSchemas = {
  input: new WeakMap<Schema, JsonSchema>(),
  output: new WeakMap<Schema, JsonSchema>(),
};

type Props = StandardSchemaV1.Props & Partial<StandardJSONSchemaV1.Props>;

// The schemas of arktype are functions.
function standardOf(schema: Schema): Props | undefined {
  if ((typeof schema !== 'object' && typeof schema !== 'function') || schema === null)
    throw noSchema();
  if (!('~standard' in schema)) {
    if (typeof schema === 'function') throw noSchema();
    return undefined;
  }
  return schema['~standard'] as Props;
}

function convert(schema: Schema, direction: Direction): JsonSchema {
  const standard = standardOf(schema);
  if (!standard) {
    refuseFields(schema as JsonSchema);
    return parseJsonSchema(schema as JsonSchema);
  }
  try {
    const converted = convertStandard(schema, standard, direction);
    return toJson(converted, 'The JSON Schema') as JsonSchema;
  } catch (cause) {
    if (isWaymarkError(cause)) throw cause;
    const reason = cause instanceof Error ? `: ${cause.message.replace(/\.+$/, '')}` : '';
    throw invalid(
      `This ${standard.vendor} schema cannot be turned into JSON Schema${reason}. Use types that JSON has, or pass a JSON Schema.`,
      { cause },
    );
  }
}

/** How the libraries write an object. */
const objectsOf: Readonly<Record<string, string>> = {
  zod: 'z.object({ … })',
  valibot: 'v.object({ … })',
  arktype: 'type({ … })',
};

// Some libraries take an object of schemas as a schema.
function refuseFields(schema: JsonSchema): void {
  for (const [name, field] of Object.entries(schema) as [string, unknown][]) {
    if ((typeof field !== 'object' && typeof field !== 'function') || field === null) continue;
    if (!('~standard' in field)) continue;
    const { vendor } = field['~standard'] as Props;
    throw invalid(
      `This is an object of schemas ("${name}"), and not a schema. Wrap it in ${objectsOf[vendor] ?? 'an object schema'}.`,
    );
  }
}

function convertStandard(schema: Schema, standard: Props, direction: Direction): unknown {
  const { vendor, jsonSchema } = standard;
  if (jsonSchema) {
    const libraryOptions = vendor === 'arktype' ? { libraryOptions: strictArktype } : {};
    return jsonSchema[direction]({ target: 'draft-07', ...libraryOptions });
  }
  if (vendor !== 'valibot') {
    throw invalid(
      `Schemas of ${vendor} cannot be turned into JSON Schema. Pass a JSON Schema instead.`,
    );
  }
  const valibot = requireOptional('@valibot/to-json-schema') as ValibotConverter | undefined;
  if (!valibot) {
    throw invalid(
      'Turning a valibot schema into JSON Schema needs the package @valibot/to-json-schema: install it, or pass a JSON Schema.',
    );
  }
  return valibot.toJsonSchema(schema, {
    target: 'draft-07',
    typeMode: direction,
    errorMode: 'throw',
  });
}

type ValibotConverter = { toJsonSchema(schema: unknown, options: object): unknown };

// Left alone, arktype says `{}` (anything) for what JSON does not have.
const refuse = ({ code }: { readonly code: string }): never => {
  throw new Error(`JSON has nothing for this ${code}`);
};
const strictArktype = {
  fallback: {
    arrayObject: refuse,
    date: refuse,
    domain: refuse,
    proto: refuse,
    symbolKey: refuse,
    unit: refuse,
  },
};

function checkJsonSchema(schema: JsonSchema, value: unknown, what: string): unknown {
  const issues = jsonSchemaIssues(schema, value, what);
  if (issues.length > 0) throw misfit(issues, { what, count: issues.length });
  return value;
}

function outputOf(result: StandardSchemaV1.Result<unknown>, what: string): unknown {
  if (!result.issues) return result.value;
  // Array.from: arktype's lists are a subclass of Array, which `slice` and `map` would construct again.
  const issues = Array.from({ length: Math.min(result.issues.length, maxIssues) }, (_, at) => {
    const { message = '', path = [] } = result.issues?.[at] ?? {};
    const steps = Array.from(path, (step) => (typeof step === 'object' ? step.key : step));
    return { path: toPointer(steps), message };
  });
  throw misfit(issues, { what, count: result.issues.length });
}

/** The most issues that an error lists, and the longest text of one. */
const maxIssues = 20;
const maxIssueLength = 500;

function misfit(
  issues: readonly SchemaIssue[],
  { what, count }: { readonly what: string; readonly count: number },
): WaymarkError {
  const kept = issues
    .slice(0, maxIssues)
    .map(({ path, message }) => ({ path: cut(path), message: cut(message) }));
  const listed = kept
    .slice(0, 5)
    .map(({ path, message }) => (path === '' ? message : `${path}: ${message}`));
  const more = count > 5 ? ` (and ${count - 5} more)` : '';
  return invalid(`${what} does not fit its schema. ${listed.join('; ')}${more}`, {
    details: { issues: kept },
  });
}

function cut(text: string): string {
  return text.length > maxIssueLength ? `${text.slice(0, maxIssueLength - 1)}…` : text;
}

function noSchema(): WaymarkError {
  return invalid(
    'A schema must be a Standard Schema (zod, valibot, arktype) or a JSON Schema object.',
  );
}
