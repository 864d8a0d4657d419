import type { Json } from './json.ts';
import type { JsonPatch } from './patch.ts';

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
