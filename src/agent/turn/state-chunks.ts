import { type Json, jsonEqual } from '../../core/json/json.ts';
import type { Artifact } from '../../protocol/state.ts';
import type { InvocationState } from './invocation-state.ts';
import type { Turn } from './turn-state.ts';

/** Characters of an artifact's text up to which it is streamed and stored as a whole when it is edited. */
const longText = 4096;

/** Streams what a turn changes in the session: artifacts, and the custom state as a whole once and then as patches. */
export function streamStateChanges(invocation: InvocationState): void {
  const { working, partial, chunkSink } = invocation;
  working.listen({
    onMessages: (messages) => {
      if (messages.some(({ role }) => role === 'model')) partial.clear();
    },
    onArtifacts: (artifacts, patch) => {
      const { turn, run } = invocation;
      if (turn === undefined) return;
      // After a takeover, clients may have a later version than the one that is edited.
      const isKnown = run?.log.attempt === 1 || turn.artifactsSent.has(patch?.name ?? '');
      const artifactPatch = isKnown && (patch?.length ?? 0) > longText ? patch : undefined;
      for (const artifact of artifacts) {
        if (!streamsArtifact(turn, artifact)) continue;
        chunkSink.push({ artifact, ...(artifactPatch && { artifactPatch }) });
      }
    },
    onCustom: ({ patch, custom }) => {
      const { turn } = invocation;
      if (turn === undefined) return;
      const whole = { op: 'replace', path: '', value: custom ?? null } as const;
      chunkSink.push({ customPatch: turn.customSent ? [...patch] : [whole] });
      turn.customSent = true;
    },
  });
}

/**
 * Whether an artifact has to be streamed; notes that it is. A named artifact is not streamed twice with the same content:
 * a handler may add an artifact and send it as well, in either order.
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
