import type { Artifact } from './state.ts';
import type { ArtifactPatch, Chunk } from './turn.ts';

/** The artifact after an edit; `undefined` if the edit was made to another version of it. */
export function patchArtifact(
  artifact: Artifact | undefined,
  { length, edits }: ArtifactPatch,
): Artifact | undefined {
  const texts = artifact?.parts.filter((part) => 'text' in part) ?? [];
  const [only] = texts;
  if (artifact === undefined || only?.text.length !== length || texts.length > 1) return undefined;
  const edited = { ...only, text: spliceText(only.text, edits) };
  return { ...artifact, parts: artifact.parts.map((part) => (part === only ? edited : part)) };
}

/** Replaces ranges of a text, which are in order and do not overlap. Their places are those before all edits. */
export function spliceText(text: string, edits: ArtifactPatch['edits']): string {
  const pieces: string[] = [];
  let at = 0;
  for (const { from, to, text: piece } of edits) {
    pieces.push(text.slice(at, from), piece);
    at = to;
  }
  return [...pieces, text.slice(at)].join('');
}

/** A chunk for a client that keeps artifacts and applies edits to them, and for stores: an edit without the edited artifact. */
export function withPatchOnly(chunk: Chunk): Chunk {
  if (chunk.artifactPatch === undefined) return chunk;
  const { artifact: _, ...rest } = chunk;
  return rest;
}

/** A chunk for a client that takes whole artifacts only. */
export function withArtifactOnly(chunk: Chunk): Chunk {
  if (chunk.artifactPatch === undefined) return chunk;
  const { artifactPatch: _, ...rest } = chunk;
  return rest;
}
