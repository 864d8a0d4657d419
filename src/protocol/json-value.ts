import * as v from 'valibot';
import { type Json, type JsonObject, toJson } from '../core/json/json.ts';

/** Any JSON value: checked, copied and frozen on the way in, so that nothing outside can change it later. */
export const jsonValue = v.pipe(
  v.unknown(),
  v.transform((value): Json => toJson(value, 'value')),
);

export const jsonObject = v.pipe(
  v.custom<JsonObject>(
    (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
    'Expected a JSON object',
  ),
  v.transform((value): JsonObject => toJson(value, 'value') as JsonObject),
);
