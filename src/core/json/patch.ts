import { invalid, type WaymarkError } from '../error.ts';
import {
  childOf,
  indexOf,
  isJsonArray,
  type Json,
  jsonEqual,
  markFrozen,
  setOwn,
  shallowCopy,
  toJson,
} from './json.ts';
import { parsePointer } from './pointer.ts';

/** One operation of a JSON Patch (RFC 6902). */
export type JsonPatchOperation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: string; readonly value: Json }
  | { readonly op: 'remove'; readonly path: string }
  | { readonly op: 'move' | 'copy'; readonly from: string; readonly path: string };

/** A JSON Patch (RFC 6902): operations that are applied one after the other, all or none. */
export type JsonPatch = readonly JsonPatchOperation[];

/** The document after a patch, frozen; it shares with the old one what the patch does not touch. */
export function applyPatch(doc: Json, patch: JsonPatch): Json {
  return patched(new WorkingCopy(doc, { toValue: toJson, freeze: markFrozen }), patch);
}

/**
 * As {@link applyPatch}, of a document and a patch that are known to be JSON: they came from an agent. Nothing is checked or
 * frozen, so that a page need not load the code for it.
 */
export function applyKnownPatch(doc: Json, patch: JsonPatch): Json {
  return patched(new WorkingCopy(doc, { toValue: (value) => value, freeze: () => {} }), patch);
}

function patched(working: WorkingCopy, patch: JsonPatch): Json {
  for (const [index, operation] of patch.entries()) {
    try {
      applyOperation(working, operation);
    } catch (error) {
      throw badOperation(error, operation, index);
    }
  }
  return working.finish();
}

type Container = Json[] | Record<string, Json>;

/** How the values of a patch are converted, and the copies that it makes are frozen. */
interface Handling {
  toValue(value: Json, what: string): Json;
  freeze(value: object): void;
}

/** A document that is being patched: containers are copied when they are first changed. */
class WorkingCopy {
  root: Json | undefined;
  // Copies made here, not shared before they are frozen.
  readonly #owned = new Set<object>();

  readonly #handling: Handling;

  constructor(root: Json, handling: Handling) {
    this.#handling = handling;
    this.root = handling.toValue(root, 'The document');
  }

  valueOf({ value }: { readonly value: Json }): Json {
    if (value === undefined) throw invalid('its value is missing');
    return this.#handling.toValue(value, 'its value');
  }

  /** The container at a path, made changeable together with everything above it. */
  open(steps: readonly string[]): Container {
    let container = this.#own(this.root, (copy) => {
      this.root = copy;
    });
    for (const step of steps) {
      const parent = container;
      const child = childOf(parent, step);
      container = this.#own(child, (copy) => put(parent, step, copy));
    }
    return container;
  }

  read(steps: readonly string[]): Json {
    const value = steps.reduce(childOf, this.root);
    if (value === undefined) throw invalid('there is nothing at that path');
    return value;
  }

  /** Freezes what was copied so far; a value that will stand in two places must not change any more. */
  settle(): void {
    for (const copy of this.#owned) this.#handling.freeze(copy);
    this.#owned.clear();
  }

  finish(): Json {
    this.settle();
    if (this.root === undefined) throw invalid('The patch leaves no document.');
    return this.root;
  }

  #own(value: Json | undefined, replace: (copy: Json) => void): Container {
    if (typeof value !== 'object' || value === null)
      throw invalid('there is no object or array to change');
    if (this.#owned.has(value)) return value as Container;
    const copy: Container = isJsonArray(value)
      ? [...value]
      : (shallowCopy(value) as Record<string, Json>);
    this.#owned.add(copy);
    replace(copy);
    return copy;
  }
}

function applyOperation(working: WorkingCopy, operation: JsonPatchOperation): void {
  if (typeof operation !== 'object' || operation === null) throw invalid('it must be an object');
  const path = steps(operation.path);
  switch (operation.op) {
    case 'add':
      add(working, path, working.valueOf(operation));
      break;
    case 'remove':
      remove(working, path);
      break;
    case 'replace':
      replace(working, path, working.valueOf(operation));
      break;
    case 'move':
      move(working, steps(operation.from), path);
      break;
    case 'copy': {
      const value = working.read(steps(operation.from));
      working.settle();
      add(working, path, value);
      break;
    }
    case 'test':
      if (!jsonEqual(working.read(path), working.valueOf(operation))) {
        throw invalid('the value there is another one');
      }
      break;
    default:
      throw invalid('there is no such operation');
  }
}

function add(working: WorkingCopy, path: readonly string[], value: Json): void {
  if (path.length === 0) {
    working.root = value;
    return;
  }
  const container = working.open(path.slice(0, -1));
  const step = lastOf(path);
  if (!Array.isArray(container)) {
    setOwn(container, step, value);
    return;
  }
  const index = step === '-' ? container.length : indexOf(step);
  if (index === undefined || index > container.length) {
    throw invalid('the index is outside the array');
  }
  container.splice(index, 0, value);
}

function remove(working: WorkingCopy, path: readonly string[]): void {
  working.read(path);
  if (path.length === 0) {
    working.root = undefined;
    return;
  }
  const container = working.open(path.slice(0, -1));
  const step = lastOf(path);
  if (Array.isArray(container)) container.splice(Number(step), 1);
  else delete container[step];
}

function replace(working: WorkingCopy, path: readonly string[], value: Json): void {
  working.read(path);
  if (path.length === 0) working.root = value;
  else put(working.open(path.slice(0, -1)), lastOf(path), value);
}

function move(working: WorkingCopy, from: readonly string[], to: readonly string[]): void {
  const within = from.every((step, at) => step === to[at]);
  if (within && from.length < to.length) throw invalid('a value cannot be moved into itself');
  const value = working.read(from);
  if (within && from.length === to.length) return;
  remove(working, from);
  add(working, to, value);
}

function put(container: Container, step: string, value: Json): void {
  if (Array.isArray(container)) container[Number(step)] = value;
  else setOwn(container, step, value);
}

function lastOf(path: readonly string[]): string {
  return path[path.length - 1] ?? '';
}

function steps(pointer: unknown): readonly string[] {
  const path = typeof pointer === 'string' ? parsePointer(pointer) : undefined;
  if (!path) throw invalid('a path must be a JSON Pointer such as "/items/0"');
  return path;
}

function badOperation(cause: unknown, operation: JsonPatchOperation, index: number): WaymarkError {
  const { op, path } = Object(operation) as Partial<JsonPatchOperation>;
  const reason = cause instanceof Error ? cause.message : '';
  return invalid(`Operation ${index} of the patch (${op} ${path}) cannot be applied: ${reason}.`, {
    details: { index, op: String(op), path: String(path) },
    cause,
  });
}

interface Known {
  readonly from: Json;
  readonly to: Json;
}

const known = new WeakMap<JsonPatch, Known>();

/** Notes that a patch leads from one value to another, so that it need not be applied to find out. */
export function markPatch(patch: JsonPatch, from: Json, to: Json): void {
  known.set(patch, { from, to });
}

/** Whether a patch is known to lead from one value to another, which are these very objects. */
export function isKnownPatch(patch: JsonPatch, from: Json, to: Json): boolean {
  const found = known.get(patch);
  return found !== undefined && found.from === from && found.to === to;
}

/** One patch behind another; known to lead where both do when both are known to fit. */
export function joinPatches(first: JsonPatch, second: JsonPatch): JsonPatch {
  if (first.length === 0) return second;
  const patch = [...first, ...second];
  const [a, b] = [known.get(first), known.get(second)];
  if (a !== undefined && b !== undefined && a.to === b.from) markPatch(patch, a.from, b.to);
  return patch;
}
