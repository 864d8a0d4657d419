import { sha256Hex } from '../platform.ts';
import {
  canonicalText,
  getOwn,
  type HashNote,
  hashNote,
  isJsonArray,
  type Json,
  type JsonObject,
  setHashNote,
  toJson,
} from './json.ts';
import { chunkedText, isLongText } from './text-chunks.ts';

export { sha256Hex as sha256 };

// A container whose text is longer than this stands in its parent as its hash.
const inlineLimit = 256;
// A container with more members than this is hashed in groups.
const wide = 64;
const groupSize = 32;

/**
 * The content address of a JSON value: SHA-256 in hex over its canonical JSON, in which nested containers whose own text is
 * long, groups of the members of wide containers, and long texts are replaced by `#` and their hash. What was hashed before is
 * remembered, so that a small change in a large frozen document costs little. The definition is in decision 0120.
 */
export function contentHash(value: Json): string {
  const json = toJson(value, 'The value to hash');
  const token = noteOf(json).token;
  return token.startsWith('#') ? token.slice(1) : sha256Hex(token);
}

/** Whether a hash is that of a value, by this definition or by the one before it, which stored hashes may be of. */
export function isContentHash(value: Json, hash: string): boolean {
  return contentHash(value) === hash || formerContentHash(value) === hash;
}

/** The content address by the first hash of decision 0120. It differs only for wide containers and long texts. */
export function formerContentHash(value: Json): string {
  return sha256Hex(formerText(toJson(value, 'The value to hash')));
}

function formerText(value: Json): string {
  return canonicalText(value, (child) => {
    const text = formerText(child);
    const isLong = typeof child === 'object' && child !== null && text.length > inlineLimit;
    return isLong ? `#${sha256Hex(text)}` : text;
  });
}

/**
 * Takes over what is known of the hash of a document for one that was made of it: of every wide container only the groups
 * with changed members are hashed again. Call it before the new document is hashed.
 */
export function carryHashes(from: Json, to: Json): void {
  if (from === to || typeof from !== 'object' || typeof to !== 'object') return;
  if (from === null || to === null) return;
  if (isJsonArray(from)) {
    if (isJsonArray(to)) carryArray(from, to);
  } else if (!isJsonArray(to)) carryObject(from, to);
}

function carryArray(from: readonly Json[], to: readonly Json[]): void {
  const groups = hashNote(from)?.groups;
  const kept: (Group | undefined)[] = [];
  let isSame = true;
  for (let at = 0; at < to.length; at++) {
    if (from[at] !== to[at]) {
      carryMember(from[at], to[at]);
      isSame = false;
    }
    if (at % groupSize === groupSize - 1) {
      kept.push(isSame ? groups?.[kept.length] : undefined);
      isSame = true;
    }
  }
  if (groups !== undefined && to.length > wide) carried.set(to, { groups: kept, keys: undefined });
}

function carryObject(from: JsonObject, to: JsonObject): void {
  const { groups, keys } = hashNote(from) ?? {};
  if (groups === undefined || keys === undefined || Object.keys(to).length !== keys.length) {
    for (const key of Object.keys(to)) carryMember(getOwn(from, key), to[key]);
    return;
  }
  const kept: (Group | undefined)[] = [];
  let isSame = true;
  for (let at = 0; at < keys.length; at++) {
    const key = keys[at] as string;
    const after = to[key];
    if (from[key] !== after) {
      // A key has gone and another one has come.
      if (!Object.hasOwn(to, key)) return;
      carryMember(from[key], after);
      isSame = false;
    }
    if (at % groupSize === groupSize - 1) {
      kept.push(isSame ? groups[kept.length] : undefined);
      isSame = true;
    }
  }
  carried.set(to, { groups: kept, keys });
}

function carryMember(before: Json | undefined, after: Json | undefined): void {
  if (before === after || before === undefined || after === undefined) return;
  if (!isLongText(after)) carryHashes(before, after);
  else if (isLongText(before)) chunkedText(after, before);
}

/** A member of a container, or a group of members of a wide one: its token, and its length as JSON. */
interface Group {
  readonly token: string;
  readonly length: number;
}

interface Carried {
  readonly groups: (Group | undefined)[];
  readonly keys: readonly string[] | undefined;
}

// Hashes that were carried over for documents that are not hashed yet.
const carried = new WeakMap<object, Carried>();

// Texts of JSON never begin with `#`, so a hash cannot be taken for a value.
function noteOf(value: Json): Group {
  if (typeof value !== 'object' || value === null) return scalarNote(value);
  const known = hashNote(value);
  if (known !== undefined) return known;
  const note = isJsonArray(value) ? arrayNote(value) : objectNote(value);
  setHashNote(value, note);
  return note;
}

function scalarNote(value: Json): HashNote {
  if (isLongText(value)) {
    const { hash, jsonLength } = chunkedText(value);
    return { token: `#${hash}`, length: jsonLength };
  }
  const token = JSON.stringify(value);
  return { token, length: token.length };
}

function arrayNote(items: readonly Json[]): HashNote {
  const { text, length, groups } = joined(items.length, (at) => noteOf(items[at] as Json), items);
  return containerNote(`[${text}]`, { length, groups });
}

function objectNote(object: JsonObject): HashNote {
  const keys = carried.get(object)?.keys ?? Object.keys(object).sort();
  const member = (at: number): Group => {
    const key = keys[at] as string;
    const name = JSON.stringify(key);
    const { token, length } = noteOf(object[key] as Json);
    return { token: `${name}:${token}`, length: name.length + 1 + length };
  };
  const { text, length, groups } = joined(keys.length, member, object);
  return containerNote(`{${text}}`, { length, groups, ...(groups && { keys }) });
}

function containerNote(text: string, { length, ...rest }: Omit<HashNote, 'token'>): HashNote {
  const token = text.length > inlineLimit ? `#${sha256Hex(text)}` : text;
  return { token, length: length + 2, ...rest };
}

/** The tokens of members, those of a wide container in groups of groups. */
function joined(
  count: number,
  member: (at: number) => Group,
  container: object,
): { readonly text: string; readonly length: number; readonly groups?: readonly Group[] } {
  if (count <= wide) {
    const { text, length } = joinRange(0, count, member);
    return { text, length };
  }
  const known = carried.get(container)?.groups;
  carried.delete(container);
  const groups: Group[] = [];
  let length = 0;
  for (let from = 0; from < count; from += groupSize) {
    const group =
      known?.[groups.length] ?? groupOf(from, Math.min(from + groupSize, count), member);
    groups.push(group);
    length += group.length + 1;
  }
  let level = groups.map(({ token }) => token);
  while (level.length > wide) {
    const above: string[] = [];
    for (let from = 0; from < level.length; from += groupSize) {
      above.push(`#${sha256Hex(`(${level.slice(from, from + groupSize).join(',')})`)}`);
    }
    level = above;
  }
  return { text: level.join(','), length: length - 1, groups };
}

function groupOf(from: number, to: number, member: (at: number) => Group): Group {
  const { text, length } = joinRange(from, to, member);
  return { token: `#${sha256Hex(`(${text})`)}`, length };
}

function joinRange(
  from: number,
  to: number,
  member: (at: number) => Group,
): { readonly text: string; readonly length: number } {
  let text = '';
  let length = 0;
  for (let at = from; at < to; at++) {
    const { token, length: own } = member(at);
    text += at === from ? token : `,${token}`;
    length += at === from ? own : own + 1;
  }
  return { text, length };
}
