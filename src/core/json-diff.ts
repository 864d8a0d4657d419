import { isJsonArray, isJsonObject, type Json, type JsonObject, jsonEqual } from './json.ts';
import { escapeStep } from './json-pointer.ts';
import type { JsonPatchOperation } from './patch.ts';

// Beyond this many pairs of items an array is compared position by position.
const maxPairs = 250_000;

/** The operations that make `to` out of `from`; both frozen, so that what they share is skipped. */
export function diffValues(from: Json, to: Json): readonly JsonPatchOperation[] {
  const operations: JsonPatchOperation[] = [];
  diffInto(operations, '', from, to);
  return operations;
}

function diffInto(out: JsonPatchOperation[], path: string, from: Json, to: Json): void {
  if (from === to) return;
  if (isJsonArray(from) && isJsonArray(to)) diffArrays(out, path, from, to);
  else if (isJsonObject(from) && isJsonObject(to)) diffObjects(out, path, from, to);
  else out.push({ op: 'replace', path, value: to });
}

function diffObjects(
  out: JsonPatchOperation[],
  path: string,
  from: JsonObject,
  to: JsonObject,
): void {
  for (const key of Object.keys(from)) {
    if (!Object.hasOwn(to, key)) out.push({ op: 'remove', path: `${path}/${escapeStep(key)}` });
  }
  for (const key of Object.keys(to)) {
    const value = to[key];
    if (value === undefined) continue;
    const place = `${path}/${escapeStep(key)}`;
    const before = Object.hasOwn(from, key) ? from[key] : undefined;
    if (before === undefined) out.push({ op: 'add', path: place, value });
    else diffInto(out, place, before, value);
  }
}

function diffArrays(
  out: JsonPatchOperation[],
  path: string,
  from: readonly Json[],
  to: readonly Json[],
): void {
  let start = 0;
  while (start < from.length && start < to.length && jsonEqual(from[start], to[start])) start++;
  let fromEnd = from.length;
  let toEnd = to.length;
  while (fromEnd > start && toEnd > start && jsonEqual(from[fromEnd - 1], to[toEnd - 1])) {
    fromEnd--;
    toEnd--;
  }
  const oldItems = from.slice(start, fromEnd);
  const newItems = to.slice(start, toEnd);
  const kept = oldItems.length * newItems.length > maxPairs ? [] : commonItems(oldItems, newItems);
  let at = start;
  let oldAt = 0;
  let newAt = 0;
  for (const [oldNext, newNext] of [...kept, [oldItems.length, newItems.length] as const]) {
    at = diffRun(out, path, at, oldItems.slice(oldAt, oldNext), newItems.slice(newAt, newNext));
    at++;
    oldAt = oldNext + 1;
    newAt = newNext + 1;
  }
}

// One stretch without common items: pairs are changed in place, the rest is removed or added.
function diffRun(
  out: JsonPatchOperation[],
  path: string,
  start: number,
  oldItems: readonly Json[],
  newItems: readonly Json[],
): number {
  const pairs = Math.min(oldItems.length, newItems.length);
  for (const [offset, item] of newItems.entries()) {
    const before = oldItems[offset];
    if (before === undefined)
      out.push({ op: 'add', path: `${path}/${start + offset}`, value: item });
    else diffInto(out, `${path}/${start + offset}`, before, item);
  }
  // From the back, so that every operation is independent of the ones before it.
  for (let extra = oldItems.length - 1; extra >= pairs; extra--) {
    out.push({ op: 'remove', path: `${path}/${start + extra}` });
  }
  return start + newItems.length;
}

// A longest common subsequence, as pairs of positions.
function commonItems(
  oldItems: readonly Json[],
  newItems: readonly Json[],
): readonly (readonly [number, number])[] {
  const width = newItems.length + 1;
  const lengths = new Uint32Array((oldItems.length + 1) * width);
  const equal = (i: number, j: number): boolean => jsonEqual(oldItems[i], newItems[j]);
  const length = (i: number, j: number): number => lengths[i * width + j] ?? 0;
  for (let i = oldItems.length - 1; i >= 0; i--) {
    for (let j = newItems.length - 1; j >= 0; j--) {
      lengths[i * width + j] = equal(i, j)
        ? length(i + 1, j + 1) + 1
        : Math.max(length(i + 1, j), length(i, j + 1));
    }
  }
  const pairs: (readonly [number, number])[] = [];
  let i = 0;
  let j = 0;
  while (i < oldItems.length && j < newItems.length) {
    if (equal(i, j)) pairs.push([i++, j++]);
    else if (length(i + 1, j) >= length(i, j + 1)) i++;
    else j++;
  }
  return pairs;
}
