import { messageOf, WaymarkError } from '../../core/error.ts';
import { diffJson } from '../../core/json/diff.ts';
import { type Json, toJson } from '../../core/json/json.ts';
import { applyPatch, type JsonPatch } from '../../core/json/patch.ts';
import { withoutRecords } from '../../protocol/messages/tool-record.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { Artifact, State } from '../../protocol/state.ts';
import type { Chunk } from '../../protocol/turn.ts';
import { markReported } from '../spec/reported-errors.ts';
import type { Transform } from '../spec/spec.ts';

/** The same transform, whose errors go to `report` and are marked as reported. */
export function reportingTransform(
  transform: Transform,
  report: (error: unknown) => void,
): Transform {
  const { state, chunk } = transform;
  if (state === undefined && chunk === undefined) return transform;
  const guard =
    <Value>(what: string, fn: (value: Value) => Value | undefined) =>
    (value: Value): Value | undefined => {
      try {
        return fn(value);
      } catch (cause) {
        report(cause);
        throw transformFailed(what, cause);
      }
    };
  return {
    ...(state && { state: guard('state', state) }),
    ...(chunk && { chunk: guard('chunk', chunk) }),
  };
}

/**
 * A state as it may leave. A transform that throws lets nothing out. The session id always leaves, as in the output: without
 * it the next turn of a client-held state would begin another session.
 */
export function transformState(transform: Transform, state: State): State | undefined {
  if (transform.state === undefined) return state;
  const changed = transform.state(structuredClone(withoutEffects(state)));
  const { sessionId } = state;
  return changed === undefined || sessionId === undefined ? changed : { ...changed, sessionId };
}

// The record of a tool call repeats parts of the custom state and of artifacts, which the transform may remove.
function withoutEffects(state: State): State {
  return state.messages === undefined
    ? state
    : { ...state, messages: withoutRecords(state.messages) };
}

/** A snapshot as it may leave. */
export function transformSnapshot(transform: Transform, snapshot: Snapshot): Snapshot {
  const { state, ...rest } = snapshot;
  if (state === undefined) return snapshot;
  const changed = transformState(transform, state);
  return changed === undefined ? rest : { ...rest, state: changed };
}

/**
 * Chunks as they may leave, in the order of one stream. Patches of the custom state, and artifacts, are what the state
 * transform makes of them, so that a chunk tells no more than the state would. What a turn is made of always leaves.
 */
export function createChunkTransform(
  transform: Transform,
  /** The custom state, as far as it is known besides the chunks. */
  knownCustom: () => Json | undefined = () => undefined,
): (chunk: Chunk) => Chunk | undefined {
  if (transform.state === undefined && transform.chunk === undefined) return (chunk) => chunk;
  const filter = stateFilter(transform, knownCustom);
  return (chunk) => {
    const { turnStart, turnEnd, snapshotCreated, ...content } = chunk;
    if (Object.keys(content).length === 0) return chunk;
    const shown = filter(content);
    const changed = transform.chunk === undefined ? shown : transform.chunk(structuredClone(shown));
    const leaving = {
      ...changed,
      ...(turnStart && { turnStart }),
      ...(snapshotCreated !== undefined && { snapshotCreated }),
      ...(turnEnd && { turnEnd }),
    };
    return Object.keys(leaving).length === 0 ? undefined : leaving;
  };
}

/** What of a chunk is state, as the state transform lets it out. */
function stateFilter(
  transform: Transform,
  knownCustom: () => Json | undefined,
): (chunk: Chunk) => Chunk {
  if (transform.state === undefined) return (chunk) => chunk;
  let custom: Json | undefined;
  const patches = patchFilter((inside) => {
    custom = inside;
    return transformState(transform, { ...noState, custom })?.custom;
  });
  const shownArtifact = (artifact: Artifact): Artifact | undefined => {
    const known = custom ?? knownCustom();
    const state = {
      ...noState,
      artifacts: [artifact],
      ...(known !== undefined && { custom: known }),
    };
    return transformState(transform, state)?.artifacts?.[0];
  };
  return ({ customPatch, artifact, ...rest }) => {
    const patch = customPatch && patches(customPatch as JsonPatch);
    const shown = artifact && shownArtifact(artifact);
    return {
      ...rest,
      ...(patch && { customPatch: [...patch] }),
      ...(shown && { artifact: shown }),
    };
  };
}

// A transform is written for whole states: what a chunk does not have is empty there, not missing.
const noState = { messages: [], artifacts: [] };

/** Patches of what a document becomes on its way out. */
function patchFilter(
  leave: (inside: Json) => Json | undefined,
): (patch: JsonPatch) => JsonPatch | undefined {
  let inside: Json = null;
  let outside: Json | undefined;
  return (patch) => {
    inside = applyPatch(inside, patch);
    const before = outside;
    const left = leave(inside);
    outside = left === undefined ? undefined : toJson(left, 'transformed state');
    if (outside === undefined) return undefined;
    if (before === undefined || patch[0]?.path === '') {
      return [{ op: 'replace', path: '', value: outside }];
    }
    const changes = diffJson(before, outside);
    return changes.length === 0 ? undefined : changes;
  };
}

function transformFailed(what: string, cause: unknown): WaymarkError {
  const error = new WaymarkError(
    'INTERNAL',
    `The agent's ${what} transform failed, so nothing was sent: ${messageOf(cause)}`,
    {
      cause,
      publicMessage: `The agent's ${what} transform failed, so nothing was sent. See its cause in the server's log.`,
    },
  );
  markReported(error);
  return error;
}
