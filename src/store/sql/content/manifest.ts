import { deepFreeze } from '../../../core/json/json.ts';
import { fileHashesIn, fileHashOf, treeHashIn, treeHashOf } from '../../../protocol/artifacts.ts';
import type { Part } from '../../../protocol/message.ts';
import type { Artifact } from '../../../protocol/state.ts';
import { longTextOf } from '../../../session/long-part.ts';
import type { SqlValue } from '../database/query.ts';
import { hexOf } from '../values/bytes.ts';
import {
  type ChunkedPart,
  type ChunkRows,
  ChunkWrites,
  isChunked,
  type ListWrite,
  type PartTexts,
  type PartWrite,
  readChunked,
} from './chunked-part.ts';
import type { Cipher } from './cipher.ts';
import { fileDigest, nodeDigest } from './files.ts';
import { documentPlace } from './places.ts';

// A part whose JSON is longer is stored once in a separate row, however many artifacts and snapshots contain it.
const largePart = 512;

/** A stored list of artifacts: the row in `blobs`, and the rows of its large parts by digest. */
export interface ManifestRef {
  readonly rowId: number;
  readonly parts: ReadonlyMap<string, number>;
  /** The rows of the chunks of long texts, by the list that names them. */
  readonly chunks: ReadonlyMap<string, ChunkRows>;
}

/** How the artifacts are written: not at all, as they were, or as a list that names its large parts. */
export type ManifestWrite =
  | { readonly kind: 'none' }
  | { readonly kind: 'same'; readonly ref: ManifestRef }
  | {
      readonly kind: 'whole';
      readonly body: SqlValue;
      readonly digest: Uint8Array;
      /** Large parts that the list before had already, by digest. */
      readonly known: ReadonlyMap<string, number>;
      readonly fresh: readonly PartWrite[];
      /** Lists of chunks that are not stored yet, and such chunks. */
      readonly lists: readonly ListWrite[];
      readonly chunks: readonly PartWrite[];
      /** The chunks of lists that are stored already. */
      readonly knownChunks: ReadonlyMap<string, ChunkRows>;
      /** The files and the tree that parts name, by the digest of their rows. */
      readonly files: ReadonlyMap<string, FileName>;
    };

/** A file that a list names. */
export interface FileName {
  readonly hash: string;
  /** Whether the list before did not name it. */
  readonly isNew: boolean;
}

/** How a list of artifacts is written after another one. */
export function writeManifest(
  base: { readonly ref: ManifestRef; readonly value: readonly Artifact[] } | undefined,
  value: readonly Artifact[],
  cipher: Cipher,
): ManifestWrite {
  if (value.length === 0) return { kind: 'none' };
  if (base !== undefined && isSame(base.value, value)) return { kind: 'same', ref: base.ref };
  const known = new Map<string, number>();
  const fresh = new Map<string, PartWrite>();
  const lists = { rows: base?.ref.parts ?? new Map(), chunks: base?.ref.chunks ?? new Map() };
  const chunked = new ChunkWrites(lists, cipher);
  const entries = value.map((artifact) => {
    const parts = artifact.parts.map((part) => {
      const longText = longTextOf(part);
      if (longText !== undefined) return chunked.add(part, longText);
      const text = JSON.stringify(part);
      // Garbage collection finds files in the list itself.
      if (text.length <= largePart || fileHashOf(part) !== undefined) return part;
      const digest = cipher.digest('part', text);
      const name = hexOf(digest);
      const stored = base?.ref.parts.get(name);
      if (stored !== undefined) known.set(name, stored);
      else fresh.set(name, { digest, body: cipher.encrypt(text, documentPlace) });
      return name;
    });
    return { ...artifact, parts };
  });
  const text = JSON.stringify(entries);
  const digest = cipher.digest('artifacts', text);
  const body = cipher.encrypt(text, documentPlace);
  return {
    kind: 'whole',
    body,
    digest,
    known: new Map([...known, ...chunked.known]),
    fresh: [...fresh.values()],
    lists: [...chunked.lists.values()],
    chunks: [...chunked.chunks.values()],
    knownChunks: chunked.knownChunks,
    files: filesIn(base?.value ?? [], value, cipher),
  };
}

function filesIn(
  before: readonly Artifact[],
  value: readonly Artifact[],
  cipher: Cipher,
): ReadonlyMap<string, FileName> {
  const hashes = fileHashesIn(value);
  const tree = treeHashIn(value);
  if (hashes.length === 0 && tree === undefined) return noFiles;
  const known = fileHashesIn(before);
  const names = new Map(
    hashes.map((hash) => [hexOf(fileDigest(hash, cipher)), { hash, isNew: !known.includes(hash) }]),
  );
  if (tree !== undefined) {
    const isNew = tree !== treeHashIn(before);
    names.set(hexOf(nodeDigest(tree, cipher)), { hash: tree, isNew });
  }
  return names;
}

const noFiles: ReadonlyMap<string, FileName> = new Map();

function isSame(a: readonly Artifact[], b: readonly Artifact[]): boolean {
  return a === b || (a.length === b.length && a.every((each, place) => each === b[place]));
}

/** A list of artifacts as it is stored: a large part is the digest of its row, and a long text stands in chunks. */
export type StoredManifest = readonly (Omit<Artifact, 'parts'> & {
  readonly parts: readonly (Part | string | ChunkedPart)[];
})[];

/** The digests of the large parts of a list, and of the lists of chunks. */
export function partsOf(manifest: StoredManifest): string[] {
  return [...new Set(manifest.flatMap(({ parts }) => parts.flatMap(namesIn)))];
}

/** The digests of the lists of chunks. */
export function chunkListsOf(manifest: StoredManifest): string[] {
  const chunked = manifest.flatMap(({ parts }) => parts.filter(isChunked));
  return [...new Set(chunked.flatMap(({ lists }) => lists))];
}

function namesIn(part: unknown): readonly string[] {
  if (typeof part === 'string') return [part];
  return isChunked(part) ? part.lists : [];
}

/** The names of large parts, and of files, in a stored document, which need not be a list of artifacts. */
export function partNamesIn(text: string, cipher: Cipher): string[] {
  const document: unknown = JSON.parse(text);
  if (!Array.isArray(document)) return [];
  const names = document.flatMap((entry: unknown) => {
    const isEntry = typeof entry === 'object' && entry !== null && 'parts' in entry;
    if (!isEntry || !Array.isArray(entry.parts)) return [];
    return entry.parts.flatMap((part: unknown) => [...namesIn(part), ...fileNamesIn(part, cipher)]);
  });
  return [
    ...new Set(names.filter((name) => typeof name === 'string' && /^[0-9a-f]{64}$/.test(name))),
  ];
}

function fileNamesIn(part: unknown, cipher: Cipher): readonly string[] {
  if (typeof part !== 'object' || part === null) return [];
  // A custom state may look like a list of artifacts: whatever it names in this way is only looked at.
  const { media } = part as { readonly media?: { readonly url?: unknown } };
  if (typeof media?.url !== 'string') return [];
  const named = { media: { url: media.url } };
  const hash = fileHashOf(named);
  if (hash !== undefined) return [hexOf(fileDigest(hash, cipher))];
  const tree = treeHashOf(named);
  return tree === undefined ? [] : [hexOf(nodeDigest(tree, cipher))];
}

/** The artifacts, with the texts of their large parts. */
export function readManifest(manifest: StoredManifest, read: PartTexts): readonly Artifact[] {
  const artifacts = manifest.map(({ parts, ...artifact }) => ({
    ...artifact,
    parts: parts.map((part): Part => {
      if (isChunked(part)) return readChunked(part, read);
      return typeof part === 'string' ? JSON.parse(read.texts.get(part) ?? 'null') : part;
    }),
  }));
  return deepFreeze(artifacts, 'The stored artifacts');
}
