import {
  dereference,
  schemaArrayKeyword,
  schemaKeyword,
  schemaMapKeyword,
} from '@cfworker/json-schema';
import { WaymarkError } from '../error.ts';
import { isJsonArray, isJsonObject, type Json } from '../json/json.ts';
import { escapeStep } from '../json/pointer.ts';

/** Refuses what cannot be a JSON Schema, at the place where it was written and not when the first value comes. */
export function checkSchemaForm(schema: Json): void {
  checkSchema(schema, '');
  checkReferences(schema);
}

function checkSchema(schema: Json | undefined, path: string): void {
  if (typeof schema === 'boolean' && path !== '') return;
  if (!isJsonObject(schema)) throw malformed(path, 'a schema must be an object');
  for (const [keyword, value] of Object.entries(schema)) {
    if (value === undefined) continue;
    const place = `${path}/${escapeStep(keyword)}`;
    checks[keyword]?.(value, place);
    checkInside(keyword, value, place);
  }
}

function checkInside(keyword: string, value: Json, place: string): void {
  if (isJsonArray(value) && !schemaMapKeyword[keyword]) {
    if (!schemaArrayKeyword[keyword]) return;
    for (const [at, child] of value.entries()) checkSchema(child, `${place}/${at}`);
  } else if (schemaMapKeyword[keyword]) {
    if (!isJsonObject(value)) throw malformed(place, 'it must be an object of schemas');
    for (const [name, child] of Object.entries(value)) {
      // `dependencies` also holds lists of names.
      if (!isJsonArray(child)) checkSchema(child, `${place}/${escapeStep(name)}`);
    }
  } else if (schemaKeyword[keyword]) {
    checkSchema(value, place);
  } else if (schemaArrayKeyword[keyword]) {
    throw malformed(place, 'it must be a list of schemas');
  }
}

const types: ReadonlySet<unknown> = new Set([
  'array',
  'boolean',
  'integer',
  'null',
  'number',
  'object',
  'string',
]);

const checks: { readonly [keyword: string]: (value: Json, place: string) => void } = {
  type(value, place) {
    const names = isJsonArray(value) ? value : [value];
    const unknown = names.find((name) => !types.has(name));
    if (unknown !== undefined)
      throw malformed(place, `there is no type ${JSON.stringify(unknown)}`);
  },
  required(value, place) {
    if (!isJsonArray(value) || value.some((name) => typeof name !== 'string')) {
      throw malformed(place, 'it must be a list of property names');
    }
  },
  enum(value, place) {
    if (!isJsonArray(value)) throw malformed(place, 'it must be a list of values');
  },
  pattern: checkPattern,
  patternProperties(value, place) {
    if (isJsonObject(value)) for (const pattern of Object.keys(value)) checkPattern(pattern, place);
  },
};

function checkPattern(value: Json, place: string): void {
  try {
    new RegExp(String(value), 'u');
  } catch {
    throw malformed(place, `${JSON.stringify(value)} is not a regular expression`);
  }
}

function checkReferences(schema: Json): void {
  // Finding out what is where leaves notes in the schema.
  const known = dereference(JSON.parse(JSON.stringify(schema)));
  for (const found of Object.values(known)) {
    if (typeof found === 'boolean' || typeof found.$ref !== 'string') continue;
    if (known[found.__absolute_ref__ ?? found.$ref] === undefined) {
      const place = found.__absolute_uri__?.split('#')[1] ?? '';
      throw malformed(`${place}/$ref`, `it leads to "${found.$ref}", which is not in this schema`);
    }
  }
}

function malformed(path: string, reason: string): WaymarkError {
  const place = path === '' ? '' : ` at ${path}`;
  return new WaymarkError('INVALID_ARGUMENT', `The JSON Schema is not valid${place}: ${reason}.`, {
    details: { path },
  });
}
