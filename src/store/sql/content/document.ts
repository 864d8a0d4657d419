import { diffJson } from '../../../core/json/diff.ts';
import { contentHash } from '../../../core/json/hash.ts';
import { type Json, jsonEqual, parseJson } from '../../../core/json/json.ts';
import { applyPatch, isKnownPatch, type JsonPatch } from '../../../core/json/patch.ts';
import type { SqlValue } from '../database/query.ts';
import type { Cipher } from './cipher.ts';
import { documentPlace } from './places.ts';

/** A stored document: the row in `blobs`, and what it would take to read it. */
export interface DocumentRef {
  readonly rowId: number;
  /** Patches since the last whole document, and their length. */
  readonly patches: number;
  readonly patchLength: number;
  /** Length of the last whole document. */
  readonly length: number;
}

/** How a document is written: not at all, as it was, as a patch to the one before, or whole. */
export type DocumentWrite =
  | { readonly kind: 'none' }
  | { readonly kind: 'same'; readonly ref: DocumentRef }
  | { readonly kind: 'patch'; readonly body: SqlValue; readonly to: DocumentRef; length: number }
  | {
      readonly kind: 'whole';
      readonly body: SqlValue;
      readonly digest: Uint8Array;
      length: number;
    };

interface Base {
  readonly ref: DocumentRef;
  readonly value: Json;
}

/**
 * How the custom state is written. A change costs its patch. A whole document is written when the patches since outweigh
 * it, or when there is one for every 256 characters of it: so a turn pays at most that much more, and reading the patches
 * stays in proportion to reading the document.
 */
export function writeDocument(
  base: Base | undefined,
  value: Json | undefined,
  patch: JsonPatch | undefined,
  cipher: Cipher,
): DocumentWrite {
  if (value === undefined) return { kind: 'none' };
  if (base === undefined) return whole(value, cipher);
  // Both are hashed already: the state is stored with its hash.
  if (contentHash(base.value) === contentHash(value)) return { kind: 'same', ref: base.ref };
  const { ref } = base;
  if (ref.patches + 1 > Math.max(8, ref.length / 256)) return whole(value, cipher);
  const text = JSON.stringify(fitting(base.value, value, patch));
  if (ref.patchLength + text.length > ref.length) return whole(value, cipher);
  return { kind: 'patch', body: cipher.encrypt(text, documentPlace), to: ref, length: text.length };
}

/** The given patch, if it leads from one to the other: what is stored must be what will be read. */
function fitting(from: Json, to: Json, patch: JsonPatch | undefined): JsonPatch {
  if (patch === undefined || patch.length === 0) return diffJson(from, to);
  if (isKnownPatch(patch, from, to)) return patch;
  return jsonEqual(applied(from, patch), to) ? patch : diffJson(from, to);
}

function applied(from: Json, patch: JsonPatch): Json | undefined {
  try {
    return applyPatch(from, patch);
  } catch {
    return undefined;
  }
}

function whole(value: Json, cipher: Cipher): DocumentWrite {
  const text = JSON.stringify(value);
  const digest = cipher.digest('custom', text);
  return { kind: 'whole', body: cipher.encrypt(text, documentPlace), digest, length: text.length };
}

/** The note of a document that was written under this number. */
export function documentRef(write: DocumentWrite, rowId: number): DocumentRef | undefined {
  switch (write.kind) {
    case 'none':
      return undefined;
    case 'same':
      return write.ref;
    case 'patch': {
      const { patches, patchLength, length } = write.to;
      return { rowId, patches: patches + 1, patchLength: patchLength + write.length, length };
    }
    case 'whole':
      return { rowId, patches: 0, patchLength: 0, length: write.length };
  }
}

/** A document from its rows, the newest patch first and the whole document last. */
export function readDocument(
  rowId: number,
  texts: readonly string[],
): { readonly value: Json; readonly ref: DocumentRef } | undefined {
  const wholeText = texts.at(-1);
  if (wholeText === undefined) return undefined;
  const patches = texts.slice(0, -1).reverse();
  const operations = patches.flatMap((text) => JSON.parse(text) as JsonPatch);
  const document = parseJson(wholeText, 'The stored custom state');
  return {
    value: operations.length === 0 ? document : applyPatch(document, operations),
    ref: {
      rowId,
      patches: patches.length,
      patchLength: patches.reduce((sum, text) => sum + text.length, 0),
      length: wholeText.length,
    },
  };
}
