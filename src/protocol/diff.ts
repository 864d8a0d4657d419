import * as v from 'valibot';
import { message } from './message.ts';
import { patchOperation } from './turn.ts';

const artifactDiff = v.object({
  /** The name; unnamed artifacts are `#0`, `#1`, … by their place. */
  name: v.string(),
  /** Whether it is only in the second snapshot, only in the first, or in both. */
  change: v.picklist(['added', 'removed', 'changed']),
  /** From the first version to the second, for `changed`. */
  patch: v.optional(v.array(patchOperation)),
});

export const diff = v.object({
  /** The first snapshot. */
  from: v.string(),
  /** The second snapshot. */
  to: v.string(),
  /** The messages that only the second snapshot has, and those that only the first has. */
  messages: v.object({ added: v.array(message), removed: v.array(message) }),
  /** The change of the custom state, as a JSON Patch. */
  custom: v.array(patchOperation),
  /** The artifacts that differ. */
  artifacts: v.array(artifactDiff),
});

/** How one artifact differs between two snapshots. */
export interface ArtifactDiff extends v.InferOutput<typeof artifactDiff> {}
/** What changed from one snapshot to another. */
export interface Diff extends v.InferOutput<typeof diff> {}
