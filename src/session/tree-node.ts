import { WaymarkError } from '../core/error.ts';

/*
 * The tree of a workspace is stored as nodes. A folder is one node, or several pages of one: a change of a file then writes a few kilobytes,
 * however many files there are. A node is named by the SHA-256 of its bytes:
 *
 *     a format byte, then for each entry: its kind (a byte), its name, and what belongs to its kind; a text has its length in bytes before it
 */

/** An entry of a node. Within a folder, entries are sorted by name. */
export type NodeEntry =
  /** A part of the folder, from this name on. */
  | { readonly kind: 'page' | 'folder'; readonly name: string; readonly hash: string }
  | {
      readonly kind: 'file' | 'executable';
      readonly name: string;
      readonly size: number;
      readonly hash: string;
    }
  | { readonly kind: 'link'; readonly name: string; readonly target: string }
  /** In the topmost node: a path that is left alone, and why. */
  | { readonly kind: 'skipped'; readonly name: string; readonly target: string }
  /** In the topmost node: the number of files, and their size. */
  | {
      readonly kind: 'totals';
      readonly name: string;
      readonly size: number;
      readonly count: number;
    };

const kinds = ['page', 'folder', 'file', 'executable', 'link', 'skipped', 'totals'] as const;
const format = 1;

/** A page ends after this many bytes at the latest, and from `smallPage` on after a name that its hash chooses. */
const largePage = 14_336;
const smallPage = 4_096;

/** The most bytes of a node: a page and one more entry. */
export const maxNodeLength: number = 32_768;

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The bytes of a node. */
export function encodeNode(entries: readonly NodeEntry[]): Uint8Array<ArrayBuffer> {
  const parts: Uint8Array[] = [Uint8Array.of(format)];
  for (const entry of entries) parts.push(encodeEntry(entry));
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/**
 * The entries of a folder in pages. Where a page ends depends on the names near its end only, so that a change leaves the other pages as
 * they are.
 */
export function pagesOf(entries: readonly NodeEntry[]): readonly (readonly NodeEntry[])[] {
  const pages: NodeEntry[][] = [];
  let page: NodeEntry[] = [];
  let size = 0;
  for (const entry of entries) {
    page.push(entry);
    size += 40 + 3 * entry.name.length + ('target' in entry ? 3 * entry.target.length : 0);
    const isFull = size >= largePage || (size >= smallPage && endsPage(entry.name));
    if (!isFull || page.length < 2) continue;
    pages.push(page);
    page = [];
    size = 0;
  }
  return page.length > 0 || pages.length === 0 ? [...pages, page] : pages;
}

function endsPage(name: string): boolean {
  let hash = 0x811c9dc5;
  for (let at = 0; at < name.length; at++) {
    hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193);
  }
  return ((hash >>> 8) & 31) === 0;
}

/** The entries of a node. `DATA_LOSS` if the bytes are no node. */
export function decodeNode(bytes: Uint8Array): readonly NodeEntry[] {
  try {
    return [...decode(bytes)];
  } catch (cause) {
    throw new WaymarkError(
      'DATA_LOSS',
      'A stored folder is damaged: its bytes are not what was written. Restore it from a backup.',
      { cause },
    );
  }
}

/** The names in a node: files of the store, and other nodes. */
export interface NodeNames {
  /** Hashes of files. */
  readonly files: readonly string[];
  /** Hashes of folders. */
  readonly nodes: readonly string[];
}

/** The hashes that a node names, each once. */
export function namesOfNode(bytes: Uint8Array): NodeNames {
  const files = new Set<string>();
  const nodes = new Set<string>();
  for (const entry of decodeNode(bytes)) {
    if (entry.kind === 'page' || entry.kind === 'folder') nodes.add(entry.hash);
    else if (entry.kind === 'file' || entry.kind === 'executable') files.add(entry.hash);
  }
  return { files: [...files], nodes: [...nodes] };
}

function encodeEntry(entry: NodeEntry): Uint8Array {
  const name = encoder.encode(entry.name);
  const bytes: number[] = [kinds.indexOf(entry.kind)];
  pushNumber(bytes, name.length);
  for (const byte of name) bytes.push(byte);
  if ('size' in entry) pushNumber(bytes, entry.size);
  if ('count' in entry) pushNumber(bytes, entry.count);
  if ('target' in entry) {
    const target = encoder.encode(entry.target);
    pushNumber(bytes, target.length);
    for (const byte of target) bytes.push(byte);
  }
  if ('hash' in entry) {
    for (let at = 0; at < 64; at += 2)
      bytes.push(Number.parseInt(entry.hash.slice(at, at + 2), 16));
  }
  return Uint8Array.from(bytes);
}

/** Seven bits a byte, the lowest first. */
function pushNumber(bytes: number[], value: number): void {
  let rest = value;
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  bytes.push(rest);
}

function* decode(bytes: Uint8Array): Generator<NodeEntry> {
  let at = 1;
  const take = (length: number): Uint8Array => {
    if (at + length > bytes.length) throw new RangeError('The node is too short.');
    at += length;
    return bytes.subarray(at - length, at);
  };
  const number = (): number => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const [byte = 0] = take(1);
      value += (byte % 128) * factor;
      if (byte < 128) return value;
      if (factor > Number.MAX_SAFE_INTEGER) throw new RangeError('A number is too large.');
    }
  };
  const text = (): string => decoder.decode(take(number()));
  const hash = (): string => hexOf(take(32));
  if (bytes[0] !== format) throw new RangeError('The format is unknown.');
  while (at < bytes.length) {
    const kind = kinds[take(1)[0] ?? kinds.length];
    const name = text();
    switch (kind) {
      case 'page':
      case 'folder':
        yield { kind, name, hash: hash() };
        break;
      case 'file':
      case 'executable':
        yield { kind, name, size: number(), hash: hash() };
        break;
      case 'link':
      case 'skipped':
        yield { kind, name, target: text() };
        break;
      case 'totals':
        yield { kind, name, size: number(), count: number() };
        break;
      case undefined:
        throw new RangeError('The kind of an entry is unknown.');
    }
  }
}

const hexes = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

function hexOf(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += hexes[byte];
  return text;
}
