import { commonEnds, commonItems } from '../diff.ts';
import {
  childOf,
  getOwn,
  isJsonArray,
  isJsonObject,
  type Json,
  type JsonObject,
  jsonEqual,
  jsonLength,
  toJson,
} from './json.ts';
import { type JsonPatch, type JsonPatchOperation, markPatch } from './patch.ts';
import { escapeStep, parsePointer } from './pointer.ts';

/** A patch that makes `to` out of `from`, as small as the difference for the usual edits. */
export function diffJson(from: Json, to: Json): JsonPatch {
  const [before, after] = [toJson(from, 'The old value'), toJson(to, 'The new value')];
  const patch = diffValues(before, after);
  markPatch(patch, before, after);
  return patch;
}

/** The operations that make `to` out of `from`; what is the same object in both is not looked into. */
export function diffValues(from: Json, to: Json): readonly JsonPatchOperation[] {
  const operations: JsonPatchOperation[] = [];
  diffInto(operations, '', from, to);
  return operations;
}

/** The value at a JSON Pointer; `undefined` where the document has none. */
export function valueAt(document: Json | undefined, pointer: string): Json | undefined {
  return (parsePointer(pointer) ?? []).reduce(childOf, document);
}

/** Adds the operations that make `to` out of `from` at a place of a document. */
export function diffInto(out: JsonPatchOperation[], path: string, from: Json, to: Json): void {
  if (from === to) return;
  const before = out.length;
  if (isJsonArray(from) && isJsonArray(to)) diffArrays(out, path, from, to);
  else if (isJsonObject(from) && isJsonObject(to)) diffObjects(out, path, from, to);
  else out.push({ op: 'replace', path, value: to });
  if (out.length - before > manyOperations && isHeavier(out.slice(before), to)) {
    out.splice(before, out.length, { op: 'replace', path, value: to });
  }
}

function diffObjects(
  out: JsonPatchOperation[],
  path: string,
  from: JsonObject,
  to: JsonObject,
): void {
  let shared = 0;
  for (const key of Object.keys(to)) {
    const value = to[key];
    const before = getOwn(from, key);
    if (before !== undefined) shared++;
    if (value === before || value === undefined) continue;
    const place = `${path}/${escapeStep(key)}`;
    if (before === undefined) out.push({ op: 'add', path: place, value });
    else diffInto(out, place, before, value);
  }
  const keys = Object.keys(from);
  if (shared === keys.length) return;
  for (const key of keys) {
    if (!Object.hasOwn(to, key)) out.push({ op: 'remove', path: `${path}/${escapeStep(key)}` });
  }
}

// An array that differs in more places is compared item by item.
const maxEdits = 200;

function diffArrays(
  out: JsonPatchOperation[],
  path: string,
  from: readonly Json[],
  to: readonly Json[],
): void {
  const { head, tail } = commonEnds(from, to, jsonEqual);
  const oldItems = from.slice(head, from.length - tail);
  const newItems = to.slice(head, to.length - tail);
  const common = commonItems(oldItems, newItems, { isEqual: jsonEqual, maxEdits });
  const end = [oldItems.length, newItems.length] as const;
  let oldAt = 0;
  let newAt = 0;
  for (const [oldNext, newNext] of [...common, end]) {
    const stretch = [oldItems.slice(oldAt, oldNext), newItems.slice(newAt, newNext)] as const;
    diffStretch(out, path, head + newAt, ...stretch);
    oldAt = oldNext + 1;
    newAt = newNext + 1;
  }
}

// A stretch between two kept items: pairs are changed in place, the rest is added or removed. Everything before it is
// already as in the new array, so its items stand at their new positions.
function diffStretch(
  out: JsonPatchOperation[],
  path: string,
  start: number,
  oldItems: readonly Json[],
  newItems: readonly Json[],
): void {
  for (const [offset, item] of newItems.entries()) {
    const before = oldItems[offset];
    const place = `${path}/${start + offset}`;
    if (before === undefined) out.push({ op: 'add', path: place, value: item });
    else diffInto(out, place, before, item);
  }
  for (let extra = oldItems.length - 1; extra >= newItems.length; extra--) {
    out.push({ op: 'remove', path: `${path}/${start + extra}` });
  }
}

// Few operations are kept even where a replacement would be shorter, as they say better what changed.
const manyOperations = 32;

function isHeavier(operations: readonly JsonPatchOperation[], value: Json): boolean {
  let weight = 0;
  for (const operation of operations) {
    weight += 30 + operation.path.length;
    if ('value' in operation) weight += jsonLength(operation.value, Number.POSITIVE_INFINITY);
  }
  return jsonLength(value, weight) < weight;
}
