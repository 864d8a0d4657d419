import type { JsonSchema } from '../../core/schema/schema.ts';

const closed = new WeakMap<JsonSchema, JsonSchema>();

/** A JSON Schema whose objects take no properties beyond those they name: providers that keep to a schema insist on it. */
export function closedSchema(schema: JsonSchema): JsonSchema {
  let result = closed.get(schema);
  if (!result) {
    result = close(schema);
    closed.set(schema, result);
  }
  return result;
}

function close(schema: JsonSchema): JsonSchema {
  const result: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(schema)) result[keyword] = closeIn(keyword, value);
  if (isObject(result.properties) && result.additionalProperties === undefined) {
    result.additionalProperties = false;
  }
  return result;
}

function closeIn(keyword: string, value: unknown): unknown {
  switch (keyword) {
    case 'items':
    case 'additionalProperties':
    case 'not':
      return closeValue(value);
    case 'anyOf':
    case 'oneOf':
    case 'prefixItems':
      return Array.isArray(value) ? value.map(closeValue) : value;
    case 'properties':
    case '$defs':
    case 'definitions':
      return isObject(value)
        ? Object.fromEntries(
            Object.entries(value).map(([name, inner]) => [name, closeValue(inner)]),
          )
        : value;
    // The schemas of an allOf hold together: closing one would shut out what another names.
    default:
      return value;
  }
}

function closeValue(value: unknown): unknown {
  return isObject(value) ? close(value) : value;
}

function isObject(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
