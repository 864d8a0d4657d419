import type { FileArtifact } from '../../agent/turn/files.ts';
import { WaymarkError } from '../../core/error.ts';
import { contentHash } from '../../core/json/hash.ts';
import type { Json } from '../../core/json/json.ts';
import type { Artifact } from '../../protocol/state.ts';

/** The content of an artifact as bytes, which are made, or read from the store, when they are sent. */
export type ArtifactBytes = HeldArtifact | StoredArtifact;

interface About {
  readonly length: number;
  readonly contentType: string;
  /** Names the content: the same content has the same one. */
  readonly etag: string;
}

interface HeldArtifact extends About {
  /** The bytes from one position to before another. */
  read(from: number, to: number): Uint8Array<ArrayBuffer>;
}

interface StoredArtifact extends About {
  /** The same in pieces, each of which is read from the store when it is asked for. */
  pieces(from: number, to: number): AsyncGenerator<Uint8Array<ArrayBuffer>>;
}

/** The content of an artifact that is one text, or one file in a data URL. */
export function artifactBytes(artifact: Artifact): HeldArtifact {
  const [part, ...others] = artifact.parts;
  const content = others.length > 0 || part === undefined ? undefined : contentOf(part);
  if (content === undefined) {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      `Artifact "${artifact.name}" is not one text or one file with its data, so it cannot be served as bytes. Read it from the snapshot.`,
    );
  }
  return { ...content, etag: etagOf(artifact) };
}

/** The content of an artifact that is a file which the store keeps. */
export function storedBytes(artifact: Artifact, file: FileArtifact): StoredArtifact {
  const { size, contentType, read } = file;
  const type = headerValue(contentType);
  return { length: size, pieces: read, contentType: type, etag: etagOf(artifact) };
}

function etagOf(artifact: Artifact): string {
  return `"${contentHash(artifact as unknown as Json)}"`;
}

function contentOf(part: Artifact['parts'][number]): Omit<HeldArtifact, 'etag'> | undefined {
  if ('text' in part) {
    const bytes = new TextEncoder().encode(part.text);
    return { ...heldBytes(bytes), contentType: 'text/plain; charset=utf-8' };
  }
  if (!('media' in part)) return undefined;
  const { url, contentType } = part.media;
  const comma = url.indexOf(',');
  if (!url.startsWith('data:') || comma < 0) return undefined;
  const [type = '', ...parameters] = url.slice('data:'.length, comma).split(';');
  const isBase64 = parameters.at(-1) === 'base64';
  const data = url.slice(comma + 1);
  return {
    ...(isBase64 ? base64Bytes(data) : heldBytes(percentDecoded(data))),
    contentType: headerValue(contentType ?? type),
  };
}

type Bytes = Pick<HeldArtifact, 'length' | 'read'>;

function heldBytes(bytes: Uint8Array<ArrayBuffer>): Bytes {
  return { length: bytes.length, read: (from, to) => bytes.subarray(from, to) };
}

const base64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** Decodes what is read. */
function base64Bytes(data: string): Bytes {
  // With line feeds or characters of the URL alphabet, a position in the text is not one in the bytes.
  if (!base64.test(data)) return heldBytes(Uint8Array.from(Buffer.from(data, 'base64')));
  const digits = data.length - (data.endsWith('==') ? 2 : data.endsWith('=') ? 1 : 0);
  return {
    length: Math.floor((digits * 3) / 4),
    read(from, to) {
      const start = Math.floor(from / 3);
      const bytes = Buffer.from(data.slice(start * 4, Math.ceil(to / 3) * 4), 'base64');
      return Uint8Array.from(bytes.subarray(from - start * 3, to - start * 3));
    },
  };
}

function percentDecoded(data: string): Uint8Array<ArrayBuffer> {
  try {
    return new TextEncoder().encode(decodeURIComponent(data));
  } catch {
    return new TextEncoder().encode(data);
  }
}

// A model or a tool may have written the type.
function headerValue(type: string): string {
  return /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+$/.test(type) ? type : 'application/octet-stream';
}
