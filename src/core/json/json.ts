import { invalid, isWaymarkError, toErrorBody, type WaymarkError } from '../error.ts';
import { toPointer } from './pointer.ts';
import type { Json, JsonObject } from './types.ts';

export type { Json, JsonObject } from './types.ts';

/** Whether a value is JSON that was checked and frozen here, all through, or is no object at all. */
export function isDeepFrozen(value: unknown): boolean {
  return typeof value !== 'object' || value === null || Mark.has(value);
}

/**
 * Checks that a value is JSON and gives a deeply frozen copy; what is frozen already is taken as it is. Properties that
 * are `undefined` are left out, and a WaymarkError becomes its public form; anything else that JSON cannot say is
 * INVALID_ARGUMENT with its path.
 */
export function toJson<T extends Json>(value: T, what: string): T;
export function toJson(value: unknown, what: string): Json;
export function toJson(value: unknown, what: string): Json {
  const result = copy(value, 0);
  if (result === undefined) throw notJson(value, what);
  return result;
}

/** As {@link toJson}; `undefined` for a value that is not JSON. */
export function tryJson(value: unknown): Json | undefined {
  return copy(value, 0);
}

/** Deeply freezes a JSON value in place, without its undefined properties: only for values that no other code holds. */
export function deepFreeze<T>(value: T, what = 'The value'): T {
  if (!freeze(value, 0)) throw notJson(value, what);
  return value;
}

/** Parses a JSON text into a deeply frozen value; INVALID_ARGUMENT says what could not be read. */
export function parseJson(text: string, what: string): Json {
  return deepFreeze(jsonIn(text, `${what} is not valid JSON.`), what);
}

/** The value of a JSON text; for any other text an INVALID_ARGUMENT with this message. */
export function jsonIn(text: string, problem: string): Json {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw invalid(problem, { cause });
  }
}

/**
 * The canonical text of a value (RFC 8785): properties sorted by UTF-16 code units, strings and numbers as ECMAScript prints
 * them. A surrogate without its other half, which the RFC refuses, is written as its escape.
 */
export function canonicalJson(value: unknown): string {
  return canonicalText(toJson(value, 'The value'));
}

/** The canonical text of a frozen value, with the text of what it holds given by `inner`; for use in core. */
export function canonicalText(value: Json, inner: (child: Json) => string = canonicalText): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  let text = '';
  if (isJsonArray(value)) {
    for (const item of value) text += text === '' ? inner(item) : `,${inner(item)}`;
    return `[${text}]`;
  }
  for (const key of Object.keys(value).sort()) {
    const property = value[key];
    if (property === undefined) continue;
    text += `${text === '' ? '' : ','}${JSON.stringify(key)}:${inner(property)}`;
  }
  return `{${text}}`;
}

/** Whether a value holds more than a thousand others; looks no further than that. */
export function isLarge(value: unknown): boolean {
  let left = 1000;
  const count = (item: unknown): boolean => {
    if (--left < 0) return true;
    if (typeof item !== 'object' || item === null) return false;
    for (const key in item) if (count((item as Record<string, unknown>)[key])) return true;
    return false;
  };
  return count(value);
}

/** Whether two JSON values are equal; the order of properties does not matter. */
export function jsonEqual(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (isJsonArray(a)) {
    return isJsonArray(b) && a.length === b.length && a.every((item, at) => jsonEqual(item, b[at]));
  }
  if (isJsonArray(b) || countOf(a) !== countOf(b)) return false;
  return Object.keys(a).every((key) => jsonEqual(a[key], getOwn(b, key)));
}

/** Whether a JSON value is an array; unlike Array.isArray it knows about readonly ones. */
export function isJsonArray(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

export function isJsonObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A property of an object; never one that it inherits. */
export function getOwn(object: JsonObject, key: string): Json | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** The value at a step of a path: an item, or an own property. */
export function childOf(value: Json | undefined, step: string | number): Json | undefined {
  if (isJsonObject(value)) return getOwn(value, String(step));
  const index = isJsonArray(value) ? indexOf(step) : undefined;
  return isJsonArray(value) && index !== undefined ? value[index] : undefined;
}

/** The place in an array that a step of a path names. */
export function indexOf(step: string | number): number | undefined {
  return /^(0|[1-9]\d*)$/.test(String(step)) ? Number(step) : undefined;
}

/** Sets a property, also one called `__proto__`, on an object that is still being made. */
export function setOwn<T>(object: Record<string, T>, key: string, value: T): void {
  if (key !== '__proto__') object[key] = value;
  else Object.defineProperty(object, key, { ...writable, value });
}

const writable = { enumerable: true, configurable: true, writable: true };

/** A copy of one plain object that shares what it holds; for use in core. */
export function shallowCopy<T>(object: { readonly [key: string]: T }): Record<string, T> {
  const keys = Object.keys(object);
  if (keys.length > 128) return wideCopy(object, keys);
  // V8 clones at once here, mostly; but it would set an own `__proto__` as the prototype.
  return Object.hasOwn(object, '__proto__') ? { ...object } : Object.assign({}, object);
}

// An object that is made without a prototype is a hash table from the start; adding key after key to another one takes
// five times as long.
function wideCopy<T>(
  object: { readonly [key: string]: T },
  keys: readonly string[],
): Record<string, T> {
  const result: Record<string, T> = Object.create(null);
  for (const key of keys) result[key] = object[key] as T;
  return Object.setPrototypeOf(result, Object.prototype);
}

// `undefined` says that the value is not JSON; why and where is worked out only for an error message.
function copy(value: unknown, depth: number): Json | undefined {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value;
    case 'number':
      return Number.isFinite(value) ? value + 0 : undefined; // JSON has no -0
    case 'object':
      if (value === null) return null;
      if (Mark.has(value)) return value as Json;
      if (depth === maxJsonDepth) return undefined;
      if (Array.isArray(value)) return copyArray(value, depth + 1);
      if (isPlainObject(value)) return copyObject(value, depth + 1);
      // As JSON.stringify writes it: without what stays in the process.
      return isWaymarkError(value) ? copy(toErrorBody(value), depth) : undefined;
    default:
      return undefined;
  }
}

function copyArray(value: readonly unknown[], depth: number): Json | undefined {
  // Copied at once and filled in place: an array that grows by push keeps room for 16 more items as long as it lives.
  const result: unknown[] = [...value];
  for (let at = 0; at < result.length; at++) {
    const before = result[at];
    if (typeof before === 'string') continue;
    const after = copy(before, depth);
    if (after === undefined) return undefined;
    if (!Object.is(after, before)) result[at] = after;
  }
  return markFrozen(result) as Json;
}

function copyObject(value: Record<string, unknown>, depth: number): Json | undefined {
  // Getters are called once, here.
  const result = shallowCopy(value);
  let extra = Object.getOwnPropertySymbols(result).length > 0;
  for (const key of Object.keys(result)) {
    const before = result[key];
    if (typeof before === 'string') continue;
    const after = copy(before, depth);
    if (after === undefined && before !== undefined) return undefined;
    if (after === undefined) extra = true;
    else if (!Object.is(after, before)) result[key] = after;
  }
  return markFrozen(extra ? withoutExtra(result) : result) as JsonObject;
}

// Leaves out what JSON.stringify leaves out: symbols, and properties that are undefined.
function withoutExtra(object: Record<string, unknown>): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(object)) {
    if (value !== undefined) setOwn(result, key, value);
  }
  return result;
}

function freeze(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return true;
    case 'number':
      return Number.isFinite(value);
    case 'object':
      if (value === null || Mark.has(value)) return true;
      if (depth === maxJsonDepth) return false;
      return freezeInside(value, depth + 1) && markFrozen(value) === value;
    default:
      return false;
  }
}

function freezeInside(value: object, depth: number): boolean {
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) if (!freeze(value[at], depth)) return false;
    return true;
  }
  if (!isPlainObject(value)) return false;
  for (const key of Object.keys(value)) {
    const property = value[key];
    const fits =
      property === undefined ? Reflect.deleteProperty(value, key) : freeze(property, depth);
    if (!fits) return false;
  }
  return true;
}

function countOf(object: JsonObject): number {
  let count = 0;
  for (const key of Object.keys(object)) if (object[key] !== undefined) count++;
  return count;
}

/** How deeply values may be nested; what walks over them is recursive and must not overflow the stack. */
const maxJsonDepth = 512;

/** Whether an object is a plain one, of any realm: no class instance, Map, Date and the like. */
export function isPlainObject(value: object): value is Record<string, unknown> {
  const prototype: unknown = Object.getPrototypeOf(value);
  return (
    prototype === Object.prototype ||
    prototype === null ||
    Object.getPrototypeOf(prototype) === null
  );
}

/** The error for a value that JSON cannot say: it names the first place where that is so, and why. */
function notJson(value: unknown, what: string): WaymarkError {
  const { path, reason } = locate(value, [], new Map()) ?? {
    path: '',
    reason: 'it changes while it is read, or is frozen with properties that are undefined',
  };
  const place = path === '' ? what : `${what} at ${path}`;
  return invalid(`${place} is not JSON: ${reason}.`, {
    details: { path },
  });
}

type Refusal = { readonly path: string; readonly reason: string };

function locate(
  value: unknown,
  path: PropertyKey[],
  around: Map<object, string>,
): Refusal | undefined {
  const refuse = (reason: string): Refusal => ({ path: toPointer(path), reason });
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return undefined;
  if (typeof value === 'number')
    return Number.isFinite(value) ? undefined : refuse(`it is ${value}`);
  if (typeof value !== 'object')
    return refuse(`it is ${value === undefined ? 'undefined' : `a ${typeof value}`}`);

  const outer = around.get(value);
  if (outer !== undefined) return refuse(`it refers back to ${outer === '' ? 'the whole' : outer}`);
  if (isWaymarkError(value)) return undefined;
  if (!Array.isArray(value) && !isPlainObject(value)) return refuse(`it is ${instanceName(value)}`);
  if (path.length === maxJsonDepth)
    return refuse(`it is nested more than ${maxJsonDepth} levels deep`);

  around.set(value, toPointer(path));
  for (const [key, child] of Array.isArray(value) ? value.entries() : Object.entries(value)) {
    if (child === undefined && !Array.isArray(value)) continue;
    path.push(key);
    const refusal = locate(child, path, around);
    if (refusal) return refusal;
    path.pop();
  }
  around.delete(value);
  return undefined;
}

function instanceName(value: object): string {
  const type: unknown = value.constructor;
  const name = typeof type === 'function' && type.name !== '' ? type.name : 'a class';
  return `an instance of ${name}`;
}

/** The remembered hash of a frozen container. */
export interface HashNote {
  /** Its text, or `#` and the hash of a long one: its part of the hash of the value that holds it. */
  readonly token: string;
  /** Characters of its canonical JSON. */
  readonly length: number;
  /** The members of a wide container in groups, and the sorted keys of an object. */
  readonly groups?: readonly { readonly token: string; readonly length: number }[] | undefined;
  readonly keys?: readonly string[] | undefined;
}

/**
 * The base of a class that puts private fields on an object which exists already: outside code cannot set, see or copy
 * them, and they go with the object. A WeakMap would say the same, but costs far more for things that come in thousands.
 * An object that is frozen refuses them.
 */
export class Branded {
  constructor(object: object) {
    // biome-ignore lint/correctness/noConstructorReturn: a subclass then puts its private fields on the object it was given
    return object;
  }
}

/**
 * On objects that are JSON and frozen all through. With 200,000 messages in memory a WeakSet is 3 to 7 times slower and
 * makes a full collection take 10 times as long.
 */
class Mark extends Branded {
  #note: HashNote | string | undefined = undefined;
  #shape: object | undefined = undefined;

  static has(object: object): boolean {
    return #note in object;
  }

  static note(object: object): HashNote | string | undefined {
    return #note in object ? object.#note : undefined;
  }

  static setNote(object: object, note: HashNote | string): void {
    if (#note in object) object.#note = note;
  }

  static shape(object: object): object | undefined {
    return #shape in object ? object.#shape : undefined;
  }

  static setShape(object: object, shape: object): void {
    if (#shape in object) object.#shape = shape;
  }
}

/** Freezes and marks one object or array, whose content has been checked and frozen. */
export function markFrozen<T extends object>(value: T): T {
  // An object frozen by other code may refuse a new field; it is then checked again the next time.
  if (!Mark.has(value) && Object.isExtensible(value)) new Mark(value);
  return Object.freeze(value);
}

export function hashNote(value: object): HashNote | undefined {
  const note = Mark.note(value);
  return typeof note === 'string' ? { token: note, length: note.length } : note;
}

export function setHashNote(value: object, note: HashNote): void {
  // Most are short, and the text says all.
  Mark.setNote(value, note.length === note.token.length && !note.groups ? note.token : note);
}

/** About how many characters a value has as JSON; stops counting once it is over `most`. Exact for what was hashed. */
export function jsonLength(value: unknown, most: number): number {
  if (typeof value === 'string') return value.length + 2;
  if (typeof value !== 'object' || value === null) return 5;
  const known = hashNote(value);
  if (known !== undefined) return known.length;
  let length = 2;
  for (const key in value) {
    const item = value[key as keyof typeof value];
    length += (Array.isArray(value) ? 1 : key.length + 4) + jsonLength(item, most - length);
    if (length > most) return length;
  }
  return length;
}

/** Whether a sealed object is known to be of a shape, where the shape is any object used as its key. */
export function hasShape(value: object, shape: object): boolean {
  return Mark.shape(value) === shape;
}

export function setShape(value: object, shape: object): void {
  Mark.setShape(value, shape);
}

type MaybeUndefined<Fields, Name extends keyof Fields> = undefined extends Fields[Name]
  ? Name
  : never;

/** An object type without `undefined`: fields that could be undefined are optional. */
export type Defined<Fields> = {
  [Name in keyof Fields as Exclude<Name, MaybeUndefined<Fields, Name>>]: Fields[Name];
} & {
  [Name in keyof Fields as MaybeUndefined<Fields, Name>]?: Exclude<Fields[Name], undefined>;
};

/** The fields that are not undefined, for data that is stored, sent or compared. */
export function defined<Fields extends object>(fields: Fields): Defined<Fields> {
  const left: Record<string, unknown> = {};
  // In a turn this is done a few times; entries would take three times as long.
  for (const name in fields) if (fields[name] !== undefined) left[name] = fields[name];
  return left as Defined<Fields>;
}
