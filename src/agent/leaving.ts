import { WaymarkError } from '../core/error.ts';
import { type Json, toJson } from '../core/json.ts';
import { applyPatch, diffJson, type JsonPatch } from '../core/patch.ts';
import type { Snapshot } from '../protocol/snapshot.ts';
import type { State } from '../protocol/state.ts';
import type { Chunk } from '../protocol/turn.ts';
import type { Transform } from './spec.ts';

/** A state as it may leave. A transform that throws lets nothing out. */
export function leavingState(transform: Transform, state: State): State | undefined {
  if (transform.state === undefined) return state;
  return guarded('state', () => transform.state?.(structuredClone(state)));
}

/** A snapshot as it may leave. */
export function leavingSnapshot(transform: Transform, snapshot: Snapshot): Snapshot {
  const { state, ...rest } = snapshot;
  if (state === undefined) return snapshot;
  const changed = leavingState(transform, state);
  return changed === undefined ? rest : { ...rest, state: changed };
}

/**
 * Chunks as they may leave, in the order of one stream. Patches of the custom state are worked out anew from what the
 * state transform makes of it, so that a patch tells no more than the state would.
 */
export function leavingChunks(transform: Transform): (chunk: Chunk) => Chunk | undefined {
  if (transform.state === undefined && transform.chunk === undefined) return (chunk) => chunk;
  const patches = patchFilter(transform);
  return (chunk) => {
    const { turnStart, turnEnd, snapshotCreated } = chunk;
    const patched = patches(chunk);
    const changed =
      transform.chunk === undefined
        ? patched
        : guarded('chunk', () => transform.chunk?.(structuredClone(patched)));
    const structure = {
      ...(turnStart && { turnStart }),
      ...(snapshotCreated !== undefined && { snapshotCreated }),
      ...(turnEnd && { turnEnd }),
    };
    const leaving = { ...changed, ...structure };
    return Object.keys(leaving).length === 0 ? undefined : leaving;
  };
}

function patchFilter(transform: Transform): (chunk: Chunk) => Chunk {
  let inside: Json | undefined;
  let outside: Json | undefined;
  return (chunk) => {
    if (transform.state === undefined || chunk.customPatch === undefined) return chunk;
    const { customPatch, ...rest } = chunk;
    const whole = customPatch[0]?.path === '';
    inside = applyPatch(inside ?? null, customPatch as JsonPatch);
    const custom = leavingState(transform, { custom: inside })?.custom;
    const before = outside;
    outside = custom === undefined ? undefined : toJson(custom, 'transformed state');
    if (outside === undefined) return rest;
    const patch: JsonPatch =
      whole || before === undefined
        ? [{ op: 'replace', path: '', value: outside }]
        : diffJson(before, outside);
    return patch.length === 0 ? rest : { ...rest, customPatch: [...patch] };
  };
}

function guarded<Value>(what: string, transform: () => Value): Value {
  try {
    return transform();
  } catch (cause) {
    throw new WaymarkError(
      'INTERNAL',
      `The agent's ${what} transform failed, so nothing was let out. See its cause in the server's log.`,
      { cause },
    );
  }
}
