import { WaymarkError } from './error.ts';

/** What JSON can say. */
export type Json = string | number | boolean | null | readonly Json[] | JsonObject;

/** A JSON object; a property that is `undefined` counts as not there. */
export type JsonObject = { readonly [key: string]: Json | undefined };

/** How deeply values may be nested; what walks over them is recursive and must not overflow the stack. */
export const maxJsonDepth = 512;

// Only this module freezes into this set, and only what it has checked: a member is JSON, and frozen all through.
const frozen = new WeakSet<object>();

/** Whether a value is JSON that was checked and frozen here, all through, or is no object at all. */
export function isDeepFrozen(value: unknown): boolean {
  return typeof value !== 'object' || value === null || frozen.has(value);
}

/**
 * Checks that a value is JSON and gives a deeply frozen copy; what is frozen already is taken as it is. Properties that
 * are `undefined` are left out; anything else that JSON cannot say is INVALID_ARGUMENT with its path.
 */
export function toJson<T extends Json>(value: T, what: string): T;
export function toJson(value: unknown, what: string): Json;
export function toJson(value: unknown, what: string): Json {
  return copy(value, { what, path: [] });
}

/** Freezes a JSON value all through, in place: only for values that nobody else holds. */
export function deepFreeze<T>(value: T, what = 'The value'): T {
  freeze(value, { what, path: [] });
  return value;
}

/** Parses a JSON text into a deeply frozen value; INVALID_ARGUMENT says what could not be read. */
export function parseJson(text: string, what: string): Json {
  let value: Json;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new WaymarkError('INVALID_ARGUMENT', `${what} is not valid JSON.`, { cause });
  }
  return deepFreeze(value, what);
}

/** The canonical text of a value (RFC 8785): properties sorted by UTF-16 code units, numbers as ECMAScript prints them. */
export function canonicalJson(value: unknown): string {
  return canonicalText(toJson(value, 'The value'));
}

/** The canonical text of a frozen value, with the text of what is inside it given by `inner`; core use only. */
export function canonicalText(value: Json, inner: (child: Json) => string = canonicalText): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (isJsonArray(value)) return `[${value.map((item) => inner(item)).join(',')}]`;
  let text = '';
  for (const key of Object.keys(value).sort()) {
    const property = value[key];
    if (property === undefined) continue;
    text += `${text === '' ? '{' : ','}${JSON.stringify(key)}:${inner(property)}`;
  }
  return text === '' ? '{}' : `${text}}`;
}

/** Whether two JSON values say the same; the order of properties does not matter. */
export function jsonEqual(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (isJsonArray(a)) {
    return isJsonArray(b) && a.length === b.length && a.every((item, at) => jsonEqual(item, b[at]));
  }
  if (isJsonArray(b)) return false;
  return countOf(a) === countOf(b) && Object.keys(a).every((key) => jsonEqual(a[key], own(b, key)));
}

/** Whether a JSON value is an array; unlike Array.isArray it knows about readonly ones. */
export function isJsonArray(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

/** Whether a JSON value is an object and not an array. */
export function isJsonObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Sets a property, also one called `__proto__`, on an object that is still being made. */
export function setOwn<T>(object: Record<string, T>, key: string, value: T): void {
  if (key !== '__proto__') object[key] = value;
  else
    Object.defineProperty(object, key, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    });
}

/** Where a walk over a value is, to name it in an error. */
export interface JsonPlace {
  readonly what: string;
  readonly path: (string | number)[];
}

/** The error for a value that JSON cannot say. */
export function notJson(value: unknown, { what, path }: JsonPlace): WaymarkError {
  const pointer = path
    .map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`)
    .join('');
  const place = pointer === '' ? what : `${what} at ${pointer}`;
  return new WaymarkError('INVALID_ARGUMENT', `${place} is not JSON: ${describe(value)}.`, {
    details: { path: pointer },
  });
}

/** Whether an object is a plain one, of any realm: no class instance, Map, Date and the like. */
export function isPlainObject(value: object): value is Record<string, unknown> {
  const prototype: unknown = Object.getPrototypeOf(value);
  return (
    prototype === Object.prototype ||
    prototype === null ||
    Object.getPrototypeOf(prototype) === null
  );
}

function copy(value: unknown, place: JsonPlace): Json {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value;
    case 'number':
      if (!Number.isFinite(value)) throw notJson(value, place);
      return value + 0; // JSON texts have no -0
    case 'object':
      if (value === null) return null;
      if (frozen.has(value)) return value as Json;
      if (place.path.length >= maxJsonDepth) throw tooDeep(place);
      return Array.isArray(value) ? copyArray(value, place) : copyObject(value, place);
    default:
      throw notJson(value, place);
  }
}

function copyArray(value: readonly unknown[], place: JsonPlace): Json {
  const { path } = place;
  const result: Json[] = [];
  for (let at = 0; at < value.length; at++) {
    path.push(at);
    result.push(copy(value[at], place));
    path.pop();
  }
  return sealed(result);
}

function copyObject(value: object, place: JsonPlace): Json {
  if (!isPlainObject(value)) throw notJson(value, place);
  const { path } = place;
  const result: Record<string, Json> = {};
  for (const key of Object.keys(value)) {
    const property = value[key];
    if (property === undefined) continue;
    path.push(key);
    setOwn(result, key, copy(property, place));
    path.pop();
  }
  return sealed(result);
}

function freeze(value: unknown, place: JsonPlace): void {
  if (typeof value !== 'object' || value === null) {
    if (typeof value === 'string' || typeof value === 'boolean' || value === null) return;
    if (typeof value === 'number' && Number.isFinite(value)) return;
    throw notJson(value, place);
  }
  if (frozen.has(value)) return;
  const { path } = place;
  if (path.length >= maxJsonDepth) throw tooDeep(place);
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) {
      path.push(at);
      freeze(value[at], place);
      path.pop();
    }
  } else {
    if (!isPlainObject(value)) throw notJson(value, place);
    for (const key of Object.keys(value)) {
      path.push(key);
      freeze(value[key], place);
      path.pop();
    }
  }
  sealed(value);
}

/** Freezes one object or array whose children are all frozen by this module; core use only. */
export function sealed<T extends object>(value: T): T {
  Object.freeze(value);
  frozen.add(value);
  return value;
}

function tooDeep({ what, path }: JsonPlace): WaymarkError {
  return new WaymarkError(
    'INVALID_ARGUMENT',
    `${what} is circular, or nested deeper than ${maxJsonDepth} levels, from "${path[0]}" on.`,
  );
}

function own(object: JsonObject, key: string): Json | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

function countOf(object: JsonObject): number {
  let count = 0;
  for (const key of Object.keys(object)) if (object[key] !== undefined) count++;
  return count;
}

function describe(value: unknown): string {
  if (value === undefined) return 'it is undefined';
  if (typeof value === 'number') return `it is ${value}`;
  if (typeof value === 'object') {
    const type: unknown = value?.constructor;
    return `it is an instance of ${typeof type === 'function' ? type.name : 'a class'}`;
  }
  return `it is a ${typeof value}`;
}
