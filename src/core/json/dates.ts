import { isPlainObject, toJson, tryJson } from './json.ts';
import type { Json } from './types.ts';

/** A type with the text of each `Date` in its place, as results of tools and steps have it. */
export type DatesAsText<Value> = 0 extends 1 & Value
  ? Value
  : Value extends Json
    ? Value
    : Value extends Date
      ? string
      : Value extends object
        ? { [Key in keyof Value]: DatesAsText<Value[Key]> }
        : Value;

/** A value with its dates, also nested ones, as ISO 8601 text. Shares everything that has none; other instances stay as they are. */
export function datesAsText<Value>(value: Awaited<Value>): DatesAsText<Value>;
export function datesAsText(value: unknown): unknown {
  return convert(value, new Map());
}

/** The result of a tool or step as JSON: as {@link toJson}, with the text of its dates. */
export function toJsonResult(value: unknown, what: string): Json {
  return tryJson(value) ?? toJson(datesAsText(value), what);
}

function convert(value: unknown, known: Map<object, unknown>): unknown {
  if (typeof value !== 'object' || value === null) return value;
  // An invalid date has no text, and is refused like every other instance.
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? value : value.toJSON();
  if (!Array.isArray(value) && !isPlainObject(value)) return value;
  if (known.has(value)) return known.get(value);
  // A value that refers back to itself is not JSON, and is refused later.
  known.set(value, value);
  const entries = Object.entries(value).map(([key, child]) => [key, convert(child, known)]);
  if (
    entries.every(([key, child]) => child === (value as Record<string, unknown>)[key as string])
  ) {
    return value;
  }
  const result = Array.isArray(value)
    ? Object.assign([...value], Object.fromEntries(entries))
    : Object.fromEntries(entries);
  known.set(value, result);
  return result;
}
