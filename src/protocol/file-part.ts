import type { MediaPart, Part } from './message.ts';
import type { Artifact } from './state.ts';

/*
 * A file that a store keeps apart from the state. The state has only a media part whose URL names the content by its SHA-256, so that
 * hashes, patches, streams and diffs never see the bytes.
 */
const fileUrl = /^waymark-file:([0-9a-f]{64})$/;

/** What a media part says of a file. */
export interface FileFacts {
  /** SHA-256 of the bytes, in lower-case hex. */
  readonly hash: string;
  /** Bytes. */
  readonly size: number;
  readonly contentType: string;
}

/** The part of an artifact that names a file. */
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
