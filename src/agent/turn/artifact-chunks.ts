import { type Json, jsonEqual } from '../../core/json/json.ts';
import type { Artifact } from '../../protocol/state.ts';
import type { Turn } from './turn-state.ts';

/**
 * Whether an artifact has to be streamed; notes that it is. A named one whose content the turn has streamed already is
 * not: handlers may add an artifact and send it as well, in either order.
 */
export function streamsArtifact(turn: Turn | undefined, artifact: Artifact): boolean {
  const { name } = artifact;
  if (turn === undefined || name === undefined) return true;
  const sent = turn.artifactsSent.get(name);
  if (sent !== undefined && isSameArtifact(sent, artifact)) return false;
  turn.artifactsSent.set(name, artifact);
  return true;
}

/** Whether two artifacts have the same content. */
export function isSameArtifact(a: Artifact, b: Artifact): boolean {
  return jsonEqual(a as unknown as Json, b as unknown as Json);
}
