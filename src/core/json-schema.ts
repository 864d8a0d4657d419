import { type OutputUnit, type SchemaDraft, Validator } from '@cfworker/json-schema';
import { WaymarkError } from './error.ts';

/** A plain JSON Schema object, of any draft from 4 to 2020-12. */
export interface JsonSchema {
  readonly [keyword: string]: unknown;
}

/** What is wrong with a value, and where: `path` is a JSON Pointer. */
export type SchemaIssue = { readonly path: string; readonly message: string };

const validators = new WeakMap<JsonSchema, Validator>();

/** The issues of a value under a JSON Schema; none when it fits. */
export function jsonSchemaIssues(schema: JsonSchema, value: unknown): readonly SchemaIssue[] {
  let validator = validators.get(schema);
  if (!validator) {
    validator = new Validator(schema, draftOf(schema), false);
    validators.set(schema, validator);
  }
  if (value === undefined) return [{ path: '', message: 'A value is required.' }];
  try {
    return toIssues(validator.validate(value).errors);
  } catch (cause) {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      'The JSON Schema cannot be used: check its $ref and pattern.',
      {
        cause,
      },
    );
  }
}

// An error of an inner schema is reported again by every keyword around it.
const wrappers: ReadonlySet<string> = new Set([
  '$ref',
  '$dynamicRef',
  '$recursiveRef',
  'properties',
  'patternProperties',
  'additionalProperties',
  'items',
  'prefixItems',
  'additionalItems',
  'allOf',
  'if',
  'then',
  'else',
  'dependentSchemas',
]);

function toIssues(errors: readonly OutputUnit[]): readonly SchemaIssue[] {
  const inner = errors.filter(({ keyword }) => !wrappers.has(keyword));
  return (inner.length > 0 ? inner : errors).map(({ instanceLocation, error }) => ({
    path: decodeURIComponent(instanceLocation.replace(/^#/, '')),
    message: error,
  }));
}

function draftOf({ $schema }: JsonSchema): SchemaDraft {
  if (typeof $schema !== 'string') return '2020-12';
  if (/draft-0?4/.test($schema)) return '4';
  if (/draft-0?[67]/.test($schema)) return '7';
  return $schema.includes('2019-09') ? '2019-09' : '2020-12';
}
