import { expect } from 'vitest';
import { isWaymarkError, type Status, type WaymarkError } from '../../core/error.ts';
import { createSha256 } from '../../core/platform.ts';
import { bytesOf } from '../../workspace/contract/content.ts';
import type {
  ApplyOptions,
  ReadContent,
  TreeEntry,
  TreeFile,
  TreeLink,
  TreeSource,
  WorkspaceFolder,
} from '../../workspace/contract/contract.ts';
import { diffTrees, emptyTree, walkTree, withEntry } from '../../workspace/contract/tree.ts';

type Spec = string | { readonly text: string; readonly isExecutable: true } | TreeLink | null;

/** The entry of a file with this text. */
export function fileOf(text: string): TreeFile {
  const bytes = new TextEncoder().encode(text);
  const hash = createSha256();
  hash.update(bytes);
  return { type: 'file', hash: hash.hex(), size: bytes.length };
}

export function linkTo(target: string): TreeLink {
  return { type: 'link', target };
}

/** Contents by hash. */
export function contentsOf(...texts: readonly string[]): ApplyOptions {
  const byHash = new Map(texts.map((text) => [fileOf(text).hash, text]));
  const content: ReadContent = async function* ({ hash }) {
    yield new TextEncoder().encode(byHash.get(hash) ?? 'other content');
  };
  return { content };
}

/** A tree of texts, executable files, links and, with `/` at the end, folders. */
export function treeOf(specs: Readonly<Record<string, Spec>>): TreeSource {
  let tree = emptyTree;
  const texts: string[] = [];
  for (const [path, spec] of Object.entries(specs)) {
    tree = withEntry(tree, path.replace(/\/$/, ''), entryOf(spec, texts));
  }
  return { tree, content: contentsOf(...texts).content };
}

function entryOf(spec: Spec, texts: string[]): TreeEntry {
  if (spec === null) return emptyTree;
  if (typeof spec === 'object' && 'type' in spec) return spec;
  const text = typeof spec === 'string' ? spec : spec.text;
  texts.push(text);
  return { ...fileOf(text), ...(typeof spec === 'object' && { isExecutable: true }) };
}

/** Makes the folder a tree, as a restore does. */
export async function applyTree(
  folder: WorkspaceFolder,
  { tree, content }: TreeSource,
): Promise<void> {
  const additions = diffTrees((await folder.scan()).tree, tree).filter(
    ({ before, after }) => before === null && after?.type !== 'folder',
  );
  const scan = await folder.scan({ include: additions.map(({ path }) => path) });
  await folder.apply(diffTrees(scan.tree, tree), { content });
}

/** The files, links and empty folders of a tree by path, to compare. */
export function shapeOf(tree: TreeSource['tree']): Record<string, unknown> {
  const shape: Record<string, unknown> = {};
  for (const [path, entry] of walkTree(tree)) {
    if (entry.type !== 'folder') shape[path] = entry;
    else if (entry.entries.size === 0) shape[`${path}/`] = 'empty';
  }
  return shape;
}

export async function readText(
  folder: WorkspaceFolder,
  path: string,
  hash?: string,
): Promise<string> {
  const bytes = await bytesOf(folder.read(path, hash === undefined ? {} : { hash }));
  return new TextDecoder().decode(bytes);
}

export async function refused(promise: Promise<unknown>, status: Status): Promise<WaymarkError> {
  const error: unknown = await promise.then(
    () => expect.fail(`expected ${status}`),
    (thrown: unknown) => thrown,
  );
  if (!isWaymarkError(error)) throw error;
  expect(error.status, error.message).toBe(status);
  return error;
}

/** A tree of up to 30 entries in folders up to three deep, always the same for a seed. */
export function randomTree(seed: number): TreeSource {
  let state = seed;
  // The numbers of Park and Miller, which suffice for trees.
  const below = (end: number): number => {
    state = (state * 48_271) % 2_147_483_647;
    return state % end;
  };
  const specs: Record<string, Spec> = {};
  const isFree = (path: string): boolean =>
    Object.keys(specs).every((each) => {
      const other = each.replace(/\/$/, '');
      return other !== path && !other.startsWith(`${path}/`) && !path.startsWith(`${other}/`);
    });
  for (let left = below(30); left > 0; left--) {
    const path = Array.from({ length: 1 + below(3) }, () => 'abcdef'[below(6)]).join('/');
    if (!isFree(path)) continue;
    const text = `${below(4)} ${'x'.repeat(below(3) * 1_000)}`;
    const kinds = [text, { text, isExecutable: true }, linkTo(`../${below(3)}`), text] as const;
    const kind = below(5);
    if (kind === 4) specs[`${path}/`] = null;
    else specs[path] = kinds[kind] ?? text;
  }
  return treeOf(specs);
}
