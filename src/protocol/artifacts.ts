import { failedPrecondition, invalid, type WaymarkError } from '../core/error.ts';
import type { MediaPart, Part, TextPart } from './message.ts';
import type { Artifact } from './state.ts';
import type { ArtifactPatch, Chunk } from './turn.ts';

/*
 * A file that a store keeps apart from the state. The state has only a media part whose URL names the content by its SHA-256, so that
 * hashes, patches, streams and diffs never see the bytes.
 */
const fileUrl = /^waymark-file:([0-9a-f]{64})$/;

export interface FileFacts {
  /** SHA-256 of the bytes, in lower-case hex. */
  readonly hash: string;
  /** Bytes. */
  readonly size: number;
  readonly contentType: string;
}

export function filePart({ hash, size, contentType }: FileFacts): MediaPart {
  return { media: { url: `waymark-file:${hash}`, contentType }, metadata: { size } };
}

/** The hash of the file that a part names; `undefined` for any other part. */
export function fileHashOf(part: Part): string | undefined {
  return 'media' in part ? fileUrl.exec(part.media.url)?.[1] : undefined;
}

/** The hashes of the files that artifacts name, each once. */
export function fileHashesIn(artifacts: readonly Artifact[]): readonly string[] {
  const found = artifacts.flatMap(({ parts }) => parts.flatMap((part) => fileHashOf(part) ?? []));
  return found.length > 1 ? [...new Set(found)] : found;
}

/*
 * The tree of a workspace stands among the artifacts of a stored state, always first, so that every store keeps, shares and deletes it like
 * any other artifact. Callers, prompts and policies never see it: see `withoutTree`.
 */
const treeUrl = /^waymark-tree:([0-9a-f]{64})$/;

/** The artifact that names a tree by the hash of its topmost node. */
function treeArtifact(hash: string): Artifact {
  return { parts: [{ media: { url: `waymark-tree:${hash}` } }] };
}

/** The hash of the tree that a part names; `undefined` for any other part. */
export function treeHashOf(part: Part): string | undefined {
  return 'media' in part ? treeUrl.exec(part.media.url)?.[1] : undefined;
}

/** The hash of the tree in a state; `undefined` if it has none. */
export function treeHashIn([first]: readonly Artifact[]): string | undefined {
  const [part] = first?.parts ?? [];
  return part && treeHashOf(part);
}

/** The hashes of all trees that artifacts name, which may be those of several states. */
export function treeHashesIn(artifacts: readonly Artifact[]): readonly string[] {
  const found = artifacts.flatMap(({ parts }) => parts.flatMap((part) => treeHashOf(part) ?? []));
  return found.length > 1 ? [...new Set(found)] : found;
}

/** The artifacts as callers see them. */
export function withoutTree(artifacts: readonly Artifact[]): readonly Artifact[] {
  return treeHashIn(artifacts) === undefined ? artifacts : artifacts.slice(1);
}

/** The artifacts with this tree, or without any. */
export function withTree(
  artifacts: readonly Artifact[],
  hash: string | undefined,
): readonly Artifact[] {
  const others = withoutTree(artifacts);
  return hash === undefined ? others : [treeArtifact(hash), ...others];
}

/** The artifact after an edit; `undefined` if the edit was made to another version of it. */
export function patchArtifact(
  artifact: Artifact | undefined,
  { length, edits }: ArtifactPatch,
): Artifact | undefined {
  const texts = artifact?.parts.filter((part) => 'text' in part) ?? [];
  const [only] = texts;
  if (artifact === undefined || only?.text.length !== length || texts.length > 1) return undefined;
  return withText(artifact, only, edits);
}

function withText(artifact: Artifact, only: TextPart, edits: ArtifactPatch['edits']): Artifact {
  const edited = { ...only, text: spliceText(only.text, edits) };
  return { ...artifact, parts: artifact.parts.map((part) => (part === only ? edited : part)) };
}

/** Replaces ranges of a text, which are in order and do not overlap. Their places are those before all edits. */
function spliceText(text: string, edits: ArtifactPatch['edits']): string {
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

/**
 * An edit of an artifact's text: the characters from `from` to `to` become `text`; or `find`, which must occur exactly
 * once, becomes `replace`. Places are those before all edits.
 */
export type TextEdit =
  | { readonly from: number; readonly to: number; readonly text: string }
  | { readonly find: string; readonly replace: string };

/** The artifact with its text edited, and the edit as it is streamed. It must have exactly one text part. */
export function editArtifactText(
  artifact: Artifact,
  edits: readonly TextEdit[],
): { readonly artifact: Artifact; readonly patch: ArtifactPatch } {
  const texts = artifact.parts.filter((part) => 'text' in part);
  const [only] = texts;
  if (only === undefined || texts.length > 1) {
    throw failedPrecondition(
      `Artifact "${artifact.name}" has ${texts.length} text parts, so its text cannot be edited. Use addArtifacts to replace it.`,
    );
  }
  const { text } = only;
  const places = edits.map((edit) => placed(text, edit)).sort((a, b) => a.from - b.from);
  for (const [at, { from }] of places.entries()) {
    if (from < (places[at - 1]?.to ?? 0)) throw invalid('Two edits of an artifact overlap.');
  }
  const patch = { name: artifact.name ?? '', length: text.length, edits: places };
  return { artifact: withText(artifact, only, places), patch };
}

function placed(text: string, edit: TextEdit): { from: number; to: number; text: string } {
  if ('find' in edit) {
    const from = edit.find === '' ? -1 : text.indexOf(edit.find);
    if (from < 0) throw unclear(edit.find, 'does not occur in it');
    if (text.indexOf(edit.find, from + 1) >= 0) throw unclear(edit.find, 'occurs more than once');
    return { from, to: from + edit.find.length, text: edit.replace };
  }
  const { from, to } = edit;
  const isRange = Number.isInteger(from) && Number.isInteger(to) && from >= 0 && from <= to;
  if (isRange && to <= text.length) return { from, to, text: edit.text };
  throw invalid(`An edit from ${from} to ${to} does not fit a text of ${text.length} characters.`);
}

function unclear(find: string, why: string): WaymarkError {
  const shown = find.length > 60 ? `${find.slice(0, 60)}…` : find;
  return failedPrecondition(
    `The artifact cannot be edited: "${shown}" ${why}. Give a text that occurs exactly once.`,
  );
}

const maxNameLength = 1_024;

export function checkArtifactName(name: string | undefined): void {
  if (name === undefined || name.length <= maxNameLength) return;
  throw invalid(
    `The name of an artifact has ${name.length} characters, of at most ${maxNameLength}.`,
  );
}
