import { diffJson } from '../core/json/diff.ts';
import type { Json } from '../core/json/json.ts';
import type { JsonPatch } from '../core/json/patch.ts';
import { loadedSkills } from '../protocol/loaded-skills.ts';
import type { Message } from '../protocol/message.ts';
import type { ArtifactDiff, Diff, SkillDiff } from '../protocol/requests.ts';
import type { Artifact } from '../protocol/state.ts';
import type { SessionState } from './session-state.ts';

export interface NamedState {
  readonly snapshotId: string;
  readonly state: SessionState;
}

export function diffStates(from: NamedState, to: NamedState): Diff {
  const common = from.state.history.commonLength(to.state.history);
  const added = to.state.history.toArray(common);
  const removed = from.state.history.toArray(common);
  const skills = skillDiffs({ added, removed }, () => to.state.history.truncate(common).toArray());
  return {
    from: from.snapshotId,
    to: to.snapshotId,
    messages: { added, removed },
    custom: toMutable(customPatch(from.state.custom, to.state.custom)),
    artifacts: artifactDiffs(from.state.artifacts, to.state.artifacts),
    ...(skills.length > 0 && { skills }),
  };
}

/** The skills that the messages on one side loaded in another version. `before` gives the messages that both sides have. */
function skillDiffs(
  { added, removed }: { readonly added: readonly Message[]; readonly removed: readonly Message[] },
  before: () => readonly Message[],
): SkillDiff[] {
  const [there, here] = [loadedSkills(removed), loadedSkills(added)];
  const names = new Set([...there.keys(), ...here.keys()]);
  if (names.size === 0) return [];
  const earlier = loadedSkills(before());
  return [...names].sort().flatMap((name): SkillDiff[] => {
    const [from, to] = [there, here].map((side) => (side.get(name) ?? earlier.get(name))?.version);
    if (from === to) return [];
    if (from === undefined) return to === undefined ? [] : [{ name, change: 'added', to }];
    if (to === undefined) return [{ name, change: 'removed', from }];
    return [{ name, change: 'changed', from, to }];
  });
}

/** A patch has no word for a missing custom state, so it counts as `null`. */
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
