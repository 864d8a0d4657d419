import * as v from 'valibot';
import { message } from './message.ts';
import { patchOperation } from './turn.ts';

/** How one artifact differs between two snapshots. Unnamed artifacts are identified by their place, as `#0`, `#1`, … */
const artifactDiff = v.object({
  name: v.string(),
  change: v.picklist(['added', 'removed', 'changed']),
  patch: v.optional(v.array(patchOperation)),
});

/** What changed from one snapshot to another. */
export const diff = v.object({
  from: v.string(),
  to: v.string(),
  messages: v.object({ added: v.array(message), removed: v.array(message) }),
  custom: v.array(patchOperation),
  artifacts: v.array(artifactDiff),
});

export interface ArtifactDiff extends v.InferOutput<typeof artifactDiff> {}
export interface Diff extends v.InferOutput<typeof diff> {}
