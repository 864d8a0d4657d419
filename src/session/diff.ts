import { diffJson } from '../core/json/diff.ts';
import type { Json } from '../core/json/json.ts';
import type { JsonPatch } from '../core/json/patch.ts';
import type { Message } from '../protocol/message.ts';
import type { ArtifactDiff, Diff } from '../protocol/requests.ts';
import type { Artifact } from '../protocol/state.ts';
import type { History, HistoryPiece } from './history.ts';
import type { SessionState } from './session-state.ts';

/** A state with the id of its snapshot. */
export interface NamedState {
  readonly snapshotId: string;
  readonly state: SessionState;
}

/** The changes from one state to another. */
export function diffStates(from: NamedState, to: NamedState): Diff {
  const common = from.state.history.commonLength(to.state.history);
  return {
    from: from.snapshotId,
    to: to.snapshotId,
    messages: {
      added: to.state.history.toArray(common),
      removed: from.state.history.toArray(common),
    },
    custom: toMutable(customPatch(from.state.custom, to.state.custom)),
    artifacts: artifactDiffs(from.state.artifacts, to.state.artifacts),
  };
}

/** A custom state that is not there is as good as `null` to a patch, which has no other word for it. */
function customPatch(from: Json | undefined, to: Json | undefined): JsonPatch {
  if (from === undefined && to === undefined) return [];
  if (from === undefined) return [{ op: 'replace', path: '', value: to ?? null }];
  if (to === undefined) return [{ op: 'replace', path: '', value: null }];
  return diffJson(from, to);
}

function artifactDiffs(from: readonly Artifact[], to: readonly Artifact[]): ArtifactDiff[] {
  const before = byName(from);
  const after = byName(to);
  const diffs: ArtifactDiff[] = [];
  for (const [name, artifact] of after) {
    const old = before.get(name);
    if (old === undefined) diffs.push({ name, change: 'added' });
    else if (old !== artifact) {
      const patch = diffJson(asJson(old), asJson(artifact));
      if (patch.length > 0) diffs.push({ name, change: 'changed', patch: toMutable(patch) });
    }
  }
  for (const name of before.keys()) {
    if (!after.has(name)) diffs.push({ name, change: 'removed' });
  }
  return diffs;
}

function byName(artifacts: readonly Artifact[]): Map<string, Artifact> {
  let unnamed = 0;
  return new Map(artifacts.map((each) => [each.name ?? `#${unnamed++}`, each]));
}

// An artifact is JSON by its schema; its optional properties are what the type of JSON objects does not know.
function asJson(artifact: Artifact): Json {
  return artifact as unknown as Json;
}

function toMutable(patch: JsonPatch): Diff['custom'] {
  return patch.map((operation) => ({ ...operation }));
}

/** How a history came out of the one before: by appending, or in pieces after a trim or an edit. */
export type HistoryDelta =
  | { readonly kind: 'append'; readonly messages: readonly Message[] }
  | { readonly kind: 'rewrite'; readonly pieces: readonly HistoryPiece[] };

/**
 * The difference of `next`. Appending, the usual case, costs what was appended. Otherwise the common beginning comes first, as
 * one range, and behind it messages of the base are recognised by identity, so that a window sliding over the history is a
 * few ranges and not a copy.
 */
export function historyDelta(base: History | undefined, next: History): HistoryDelta {
  if (base === undefined) return { kind: 'append', messages: next.toArray() };
  if (base.isPrefixOf(next)) {
    return { kind: 'append', messages: next.slice(base.length, next.length) };
  }
  return { kind: 'rewrite', pieces: pieces(base, next) };
}

type GrowingPiece =
  | { readonly kind: 'kept'; readonly from: number; to: number }
  | { readonly kind: 'new'; readonly messages: Message[] };

function pieces(base: History, next: History): readonly HistoryPiece[] {
  const common = base.commonLength(next);
  const left = base.slice(common, base.length);
  const places = new Map(left.map((message, place) => [message, common + place]));
  const found: GrowingPiece[] = common === 0 ? [] : [{ kind: 'kept', from: 0, to: common }];
  for (const message of next.slice(common, next.length)) {
    const last = found.at(-1);
    const place = places.get(message);
    // Extending a range comes first: a message may stand in the base more than once.
    if (last?.kind === 'kept' && left[last.to - common] === message) last.to++;
    else if (place !== undefined) found.push({ kind: 'kept', from: place, to: place + 1 });
    else if (last?.kind === 'new') last.messages.push(message);
    else found.push({ kind: 'new', messages: [message] });
  }
  return found;
}
