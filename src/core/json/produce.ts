import { create, isDraft, type Patches, rawReturn } from 'mutative';
import { invalid } from '../error.ts';
import { diffInto, diffValues } from './diff.ts';
import { carryHashes } from './hash.ts';
import { childOf, type Json, toJson, tryJson } from './json.ts';
import { applyPatch, type JsonPatch, type JsonPatchOperation, markPatch } from './patch.ts';
import { toPointer } from './pointer.ts';

/** A value that a recipe may change in place. */
export type Draft<T> = [Json] extends [T] ? DraftJson<T> : DraftOf<T>;

type DraftOf<T> = T extends object ? { -readonly [Key in keyof T]: Draft<T[Key]> } : T;

// `any` and `unknown` stay what they are; Json itself would recurse without end.
type DraftJson<T> = unknown extends T ? T : MutableJson;
type MutableJson =
  | string
  | number
  | boolean
  | null
  | MutableJson[]
  | { [key: string]: MutableJson | undefined };

/** A change as a new frozen value and the patch that leads to it. */
export interface Produced<T> {
  readonly value: T;
  readonly patch: JsonPatch;
}

/**
 * Changes a document through a draft: the recipe changes the draft, or returns a new value. What it does not touch is the
 * same object as before; what it assigns is checked and copied.
 */
export function produce<T>(doc: T, recipe: (draft: Draft<T>) => unknown): Produced<T> {
  const base = doc === undefined ? undefined : toJson(doc, 'The document');
  const { changed, recorded } = drafted(base, recipe as (draft: unknown) => unknown);
  // The recipe's types say that it makes a T; callers with a schema validate the value.
  if (changed === undefined || changed === base) return { value: base as T, patch: [] };
  if (base === undefined) {
    const value = toJson(changed, 'The changed document');
    return { value: value as T, patch: [{ op: 'replace', path: '', value }] };
  }
  const { value, patch } = fromRecorded(base, recorded) ?? compared(base, changed);
  if (patch.length > 0) markPatch(patch, base, value);
  return { value: value as T, patch };
}

/** The value as a whole, compared with the one before: costs the width of the containers that were changed. */
function compared(base: Json, changed: unknown): Produced<Json> {
  const value = toJson(changed, 'The changed document');
  const patch = diffValues(base, value);
  if (patch.length === 0) return { value: base, patch };
  carryHashes(base, value);
  return { value, patch };
}

// More changes than this are compared as a whole.
const fewChanges = 16;

/**
 * The value by what the draft recorded: costs what was changed, also in a wide container. Not for arrays whose length
 * changed, as the draft library writes a removal at the front of an array as a change of every item, nor for anything
 * unusual: `undefined` says that the values have to be compared.
 */
function fromRecorded(
  base: Json,
  recorded: Patches<{ pathAsArray: true }>,
): Produced<Json> | undefined {
  if (recorded.length === 0 || recorded.length > fewChanges || !areApart(recorded))
    return undefined;
  const patch: JsonPatchOperation[] = [];
  for (const { op, path, value } of recorded) {
    const before = path.reduce(childOf, base as Json | undefined);
    if (op !== 'replace' || before === undefined) return undefined;
    const after = tryJson(value);
    if (after === undefined) return undefined;
    diffInto(patch, toPointer(path), before, after);
  }
  if (patch.length === 0) return { value: base, patch };
  const value = applyPatch(base, patch);
  carryHashes(base, value);
  return { value, patch };
}

/** Whether no change lies within another one, and none is of the whole document. */
function areApart(recorded: Patches<{ pathAsArray: true }>): boolean {
  const pointers = recorded.map(({ path }) => `${toPointer(path)}/`);
  return pointers.every(
    (pointer, at) =>
      pointer !== '/' &&
      pointers.every((other, place) => place === at || !other.startsWith(pointer)),
  );
}

interface Drafted {
  readonly changed: unknown;
  readonly recorded: Patches<{ pathAsArray: true }>;
}

function drafted(base: Json | undefined, recipe: (draft: unknown) => unknown): Drafted {
  const run = (draft: unknown): unknown => {
    const result = recipe(draft);
    if (!(result instanceof Promise)) return result;
    // Its outcome is of no interest, and it may be a draft, which cannot be looked at any more.
    result.then(
      () => {},
      () => {},
    );
    throw invalid('A recipe must be synchronous: do the waiting before it.');
  };
  if (typeof base !== 'object' || base === null) return { changed: run(base), recorded: [] };
  const options = { enablePatches: { pathAsArray: true } } as const;
  const inDraft = (draft: object): unknown => {
    const result = run(draft);
    return isNew(result) ? rawReturn(result) : result;
  };
  const [changed, recorded] = create(base as object, inDraft as (draft: object) => void, options);
  return { changed, recorded };
}

/** Whether a recipe returned a value with nothing of the draft in it. The draft library writes to the console when it is not told so. */
function isNew(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  const seen = new Set<unknown>([value]);
  for (const each of seen) {
    if (isDraft(each)) return false;
    for (const item of Object.values(each as object)) {
      if (typeof item === 'object' && item !== null) seen.add(item);
    }
  }
  return true;
}
