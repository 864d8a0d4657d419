import { diffJson } from '../../core/json/diff.ts';
import { contentHash, isContentHash } from '../../core/json/hash.ts';
import { defined, type Json, toJson } from '../../core/json/json.ts';
import { applyPatch, type JsonPatch } from '../../core/json/patch.ts';
import type { Message } from '../../protocol/message.ts';
import type { Artifact } from '../../protocol/state.ts';
import { type History, historyDelta } from '../../session/history.ts';
import { LazyState } from '../../session/lazy-state.ts';
import { emptyState, type SessionState } from '../../session/session-state.ts';

/** A state as it is written: the difference to a state that was written before. Omitted fields are unchanged. */
export interface StateDelta {
  /** The snapshot that it is a difference to, or `checkpoint` for the run's last one. @default the empty state */
  readonly base?: string;
  /** Messages after those of the base. */
  readonly messages?: readonly Message[];
  /** Instead, after a trim or an edit: ranges of the base's messages, and new ones. */
  readonly pieces?: readonly (
    | { readonly kept: readonly [number, number] }
    | { readonly new: readonly Message[] }
  )[];
  /** The custom state as a patch or as a whole; `{}`: there is none. */
  readonly custom?: { readonly patch?: JsonPatch; readonly whole?: Json };
  /** The hashes of all artifacts. */
  readonly artifacts?: readonly string[];
}

/** A state that was written: a snapshot, or a checkpoint. */
export interface WrittenState {
  readonly id: string;
  readonly state: SessionState;
}

// A patch this short is used without comparing its length with that of the document.
const shortPatch = 1024;

// The hashes of artifacts that have not been read are known by state, those of others by array.
const hashesOfStates = new WeakMap<SessionState, readonly string[]>();
const hashesOfArrays = new WeakMap<readonly Artifact[], readonly string[]>();

/** The hashes of a state's artifacts. */
export function artifactHashes(state: SessionState): readonly string[] {
  const known = hashesOfStates.get(state) ?? hashesOfArrays.get(state.artifacts);
  if (known !== undefined) return known;
  const hashes = state.artifacts.map(artifactHash);
  hashesOfArrays.set(state.artifacts, hashes);
  return hashes;
}

/** The content address of an artifact. */
export function artifactHash(artifact: Artifact): string {
  // An artifact is JSON by its schema; its optional properties are what the type of JSON objects does not know.
  return contentHash(artifact as unknown as Json);
}

/** Whether a hash, which an earlier version may have written, belongs to an artifact. */
export function isArtifactHash(artifact: Artifact, hash: string): boolean {
  return isContentHash(artifact as unknown as Json, hash);
}

/** The difference of a state to the first base that it extends by appending, else to the first one. */
export function toDelta(state: SessionState, bases: readonly WrittenState[]): StateDelta {
  const base = bases.find((each) => each.state.history.isPrefixOf(state.history)) ?? bases[0];
  const from = base?.state ?? emptyState;
  return defined({
    base: base?.id,
    ...messagesDelta(from.history, state.history),
    custom: customDelta(from.custom, state.custom),
    artifacts: sameArtifacts(from, state) ? undefined : [...artifactHashes(state)],
  });
}

/** The state that a delta makes of its base. */
export function fromDelta(
  delta: StateDelta,
  base: SessionState,
  readArtifact: (hash: string) => Artifact,
): SessionState {
  const history = historyFrom(delta, base.history);
  const custom = customFrom(delta.custom, base.custom);
  const hashes = delta.artifacts ?? artifactHashes(base);
  if (hashes.length === 0) return { history, custom, artifacts: emptyState.artifacts };
  const state = new LazyState(history, custom, () => {
    const artifacts =
      delta.artifacts === undefined ? base.artifacts : frozen(hashes.map(readArtifact));
    hashesOfArrays.set(artifacts, hashes);
    return artifacts;
  });
  hashesOfStates.set(state, hashes);
  return state;
}

function frozen(artifacts: readonly Artifact[]): readonly Artifact[] {
  return toJson(artifacts, 'artifacts') as unknown as readonly Artifact[];
}

/** The difference between two histories. */
function messagesDelta(from: History, to: History): Pick<StateDelta, 'messages' | 'pieces'> {
  const delta = historyDelta(from, to);
  if (delta.kind === 'append') {
    return delta.messages.length === 0 ? {} : { messages: delta.messages };
  }
  const pieces = delta.pieces.map((piece) =>
    piece.kind === 'new'
      ? { new: piece.messages }
      : { kept: [piece.from, piece.to] as [number, number] },
  );
  return { pieces };
}

function historyFrom({ messages: added, pieces }: StateDelta, base: History): History {
  if (pieces === undefined) return added === undefined ? base : base.append(added);
  return base.rebuild(
    pieces.map((piece) =>
      'new' in piece
        ? { kind: 'new', messages: piece.new }
        : { kind: 'kept', from: piece.kept[0], to: piece.kept[1] },
    ),
  );
}

function customDelta(from: Json | undefined, to: Json | undefined): StateDelta['custom'] {
  if (from === to) return undefined;
  if (to === undefined) return {};
  if (from === undefined) return { whole: to };
  const patch = diffJson(from, to);
  if (patch.length === 0) return undefined;
  const length = JSON.stringify(patch).length;
  const isShort = length < shortPatch || length < JSON.stringify(to).length;
  return isShort ? { patch } : { whole: to };
}

function customFrom(delta: StateDelta['custom'], base: Json | undefined): Json | undefined {
  if (delta === undefined) return base;
  return delta.patch === undefined ? delta.whole : applyPatch(base ?? null, delta.patch);
}

/** Whether two states have the same artifacts, without reading them. */
export function sameArtifacts(a: SessionState, b: SessionState): boolean {
  const before = artifactHashes(a);
  const after = artifactHashes(b);
  return before.length === after.length && before.every((hash, at) => hash === after[at]);
}
