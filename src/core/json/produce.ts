import { create } from 'mutative';
import { WaymarkError } from '../error.ts';
import { diffValues } from './diff.ts';
import { type Json, toJson } from './json.ts';
import type { JsonPatch, JsonPatchOperation } from './patch.ts';

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
  const changed = drafted(base, recipe as (draft: unknown) => unknown);
  // The recipe's types say that it makes a T; callers with a schema validate the value.
  if (changed === undefined || changed === base) return { value: base as T, patch: [] };
  const value = toJson(changed, 'The changed document');
  // The patch is read off the two values and not recorded on the way: the draft library writes a removal at the front of
  // an array as a change of every item. Shared parts are skipped, so this too costs what changed.
  const patch = base === undefined ? [whole(value)] : diffValues(base, value);
  return patch.length === 0 ? { value: base as T, patch } : { value: value as T, patch };
}

function drafted(base: Json | undefined, recipe: (draft: unknown) => unknown): unknown {
  const run = (draft: unknown): unknown => {
    const result = recipe(draft);
    if (!(result instanceof Promise)) return result;
    // Its outcome is of no interest, and it may be a draft, which cannot be looked at any more.
    result.then(
      () => {},
      () => {},
    );
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      'A recipe must be synchronous: do the waiting before it.',
    );
  };
  if (typeof base !== 'object' || base === null) return run(base);
  return create(base as object, run as (draft: object) => void);
}

function whole(value: Json): JsonPatchOperation {
  return { op: 'replace', path: '', value };
}
