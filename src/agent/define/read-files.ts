import { diffLines, withContext } from '../../core/diff.ts';
import { failedPrecondition, WaymarkError } from '../../core/error.ts';
import { fileHashOf, filePart, treeHashIn } from '../../protocol/artifacts.ts';
import type { Lookup } from '../../protocol/ids.ts';
import type { OpenedFile, OpenFileOptions } from '../../protocol/opened-file.ts';
import type { FileDiff, FileInfo } from '../../protocol/requests.ts';
import type { Page } from '../../protocol/session.ts';
import type { Artifact } from '../../protocol/state.ts';
import type { FilePlace, ListOptions, LoadedState, Scope } from '../../store/contract/store.ts';
import { pageOf } from '../../store/rules/page.ts';
import type {
  ReadContent,
  SkippedPath,
  TreeChange,
  TreeEntry,
  TreeFile,
} from '../../workspace/contract/contract.ts';
import { diffTrees, emptyTree, walkTree } from '../../workspace/contract/tree.ts';
import type { AgentSpec } from '../contract/spec.ts';
import { unknownSnapshot } from '../persistence/store-errors.ts';
import { transformState } from '../persistence/transform.ts';
import { openFile } from '../turn/files.ts';
import { changesTo, type FolderOf, openFolder, treesOf, workspaceOf } from '../workspace/folder.ts';
import { type StoredTree, treeReader } from '../workspace/stored-tree.ts';

/** Files that a list has unless it is asked for another number. */
const defaultLimit = 1000;

/** Files whose lines a diff compares, and the size of each. */
const maxCompared = 200;
const maxComparedSize: number = 256 * 1024;

/** The state of a snapshot, or of the head of a session. */
async function stateAt(spec: AgentSpec, scope: Scope, lookup: Lookup): Promise<LoadedState> {
  const found = await spec.turnStore.load(scope, lookup);
  if (found !== undefined) return found;
  const [what, id] =
    'snapshotId' in lookup ? ['snapshot', lookup.snapshotId] : ['session', lookup.sessionId];
  const otherwise = `No ${what} "${id.slice(0, 64)}" of agent "${spec.name}".`;
  throw await unknownSnapshot(spec, scope, id, otherwise);
}

interface FoundTree {
  readonly found: LoadedState;
  readonly place: FilePlace;
  /** Reads trees of the session; only for a snapshot that has one. */
  readonly reader: ReturnType<typeof treeReader>;
  readonly hash: string | undefined;
}

async function treeAt(spec: AgentSpec, scope: Scope, lookup: Lookup): Promise<FoundTree> {
  const found = await stateAt(spec, scope, lookup);
  const place = { scope, sessionId: found.snapshot.sessionId, runId: found.snapshotId };
  const hash = treeHashIn(found.state.artifacts);
  return {
    found,
    place,
    hash,
    get reader() {
      return treeReader(treesOf(spec), place);
    },
  };
}

/** The files of a snapshot, by path. */
export async function listFiles(
  spec: AgentSpec,
  scope: Scope,
  lookup: Lookup,
  options: ListOptions,
): Promise<Page<FileInfo>> {
  const { hash, reader, found } = await treeAt(spec, scope, lookup);
  if (hash === undefined) return { items: [] };
  const { tree } = await reader.read(hash);
  const files = [...walkTree(tree)].filter(([, entry]) => entry.type !== 'folder');
  const shown = shownPaths(spec, found, files);
  const infos = files
    .filter(([path]) => shown === undefined || shown.has(path))
    .map(([path, entry]) => toInfo(path, entry))
    .sort((a, b) => (a.path < b.path ? -1 : 1));
  return pageOf(infos, ({ path }) => [0, path], { limit: defaultLimit, ...options });
}

function toInfo(path: string, entry: TreeEntry): FileInfo {
  if (entry.type === 'file') {
    const { size, hash, isExecutable } = entry;
    return { path, type: 'file', size, hash, ...(isExecutable && { executable: true }) };
  }
  const target = entry.type === 'link' ? entry.target : '';
  return { path, type: 'link', size: target.length, target };
}

/**
 * The paths that a transform of the state lets out: it gets the files as artifacts with their paths as names. `undefined`: there is no
 * transform.
 */
function shownPaths(
  spec: AgentSpec,
  found: LoadedState,
  files: readonly (readonly [string, TreeEntry])[],
): ReadonlySet<string> | undefined {
  if (spec.transform.state === undefined) return undefined;
  const artifacts = files.map(([path, entry]) => toArtifact(path, entry));
  const shown = transformed(spec, found, artifacts);
  return new Set(shown.flatMap(({ name }) => name ?? []));
}

function transformed(
  { transform }: AgentSpec,
  { state: { custom }, snapshot: { sessionId } }: LoadedState,
  artifacts: readonly Artifact[],
): readonly Artifact[] {
  const state = {
    sessionId,
    messages: [],
    artifacts: [...artifacts],
    ...(custom !== undefined && { custom }),
  };
  return transformState(transform, state)?.artifacts ?? [];
}

function toArtifact(path: string, entry: TreeEntry): Artifact {
  const file = entry.type === 'file' ? entry : { hash: '0'.repeat(64), size: 0 };
  return { name: path, parts: [filePart({ ...file, contentType: octets })] };
}

const octets = 'application/octet-stream';

/** Opens a file of the workspace as a snapshot has it. */
export async function openWorkspaceFile(
  spec: AgentSpec,
  scope: Scope,
  lookup: Lookup,
  path: string,
  options?: OpenFileOptions,
): Promise<OpenedFile> {
  const { hash, reader, found, place } = await treeAt(spec, scope, lookup);
  const entry = hash === undefined ? undefined : await reader.find(hash, path);
  if (entry === undefined || entry.type === 'folder') throw noFile(path);
  const shown =
    spec.transform.state === undefined
      ? toArtifact(path, entry)
      : transformed(spec, found, [toArtifact(path, entry)]).find(({ name }) => name === path);
  const [part] = shown?.parts ?? [];
  if (shown === undefined || part === undefined) throw noFile(path);
  if (entry.type === 'link') {
    throw failedPrecondition(
      `"${path.slice(0, 200)}" is a link to "${entry.target.slice(0, 200)}". Open the file that it leads to.`,
    );
  }
  // A transform must not make another file of it.
  if (fileHashOf(part) !== entry.hash) throw noFile(path);
  return await openFile(spec, place, { artifact: toArtifact(path, entry), name: path }, options);
}

function noFile(path: string): WaymarkError {
  return new WaymarkError(
    'NOT_FOUND',
    `There is no artifact or file "${path.slice(0, 200)}" in this snapshot.`,
  );
}

/** The two trees that a diff compares. */
interface Compared {
  readonly before: Contents | undefined;
  readonly after: Contents | undefined;
  readonly changes: readonly TreeChange[];
}

type Contents = Pick<StoredTree, 'content'>;

/** The files that differ between two snapshots, or with `now` between the folder and the second one, with their lines. */
export async function diffFiles(
  spec: AgentSpec,
  scope: Scope,
  {
    from,
    to,
    now: isNow,
  }: {
    readonly from: string;
    readonly to: string;
    readonly now: Pick<FolderOf, 'context'> | undefined;
  },
): Promise<readonly FileDiff[]> {
  const [a, b] = await Promise.all([
    treeAt(spec, scope, { snapshotId: from }),
    treeAt(spec, scope, { snapshotId: to }),
  ]);
  const { before, after, changes } =
    isNow === undefined ? await compareTrees(a, b) : await compareFolder(spec, isNow, a, b);
  const shownBefore = shownPaths(spec, a.found, entriesOf(changes, 'before'));
  const shownAfter = shownPaths(spec, b.found, entriesOf(changes, 'after'));
  const diffs: FileDiff[] = [];
  let compared = 0;
  for (const change of changes.toSorted((x, y) => (x.path < y.path ? -1 : 1))) {
    const { path } = change;
    const old = shownBefore?.has(path) === false ? undefined : fileIn(change.before);
    const now = shownAfter?.has(path) === false ? undefined : fileIn(change.after);
    if (old === undefined && now === undefined) continue;
    const isCompared = compared++ < maxCompared;
    const lines = isCompared
      ? await linesOf(
          await textOf(spec, a.found, before, path, old),
          await textOf(spec, b.found, after, path, now),
        )
      : undefined;
    diffs.push({
      path,
      change: old === undefined ? 'added' : now === undefined ? 'removed' : 'changed',
      ...(lines && { lines: [...lines] }),
    });
  }
  return diffs;
}

async function compareTrees(a: FoundTree, b: FoundTree): Promise<Compared> {
  if (a.hash === b.hash) return { before: undefined, after: undefined, changes: [] };
  // One reader for both, so that equal folders are not compared.
  const reader = a.reader;
  const same = a.place.sessionId === b.place.sessionId ? reader : b.reader;
  const before = a.hash === undefined ? undefined : await reader.read(a.hash);
  const after = b.hash === undefined ? undefined : await same.read(b.hash);
  const changes = diffTrees(before?.tree ?? emptyTree, after?.tree ?? emptyTree);
  return { before, after, changes };
}

/** Compares the folder of the first snapshot's session, as it is now, with the files of the second snapshot. */
async function compareFolder(
  spec: AgentSpec,
  { context }: Pick<FolderOf, 'context'>,
  { place, hash: start }: FoundTree,
  { reader, hash }: FoundTree,
): Promise<Compared> {
  // A restore of it leaves the files as they are.
  if (hash === undefined) return { before: undefined, after: undefined, changes: [] };
  const workspace = await workspaceOf(spec, { ...place, context });
  const folder = await openFolder(spec, workspace, place, { hash: start, place });
  const { target, changes } = await changesTo(folder, { reader, hash });
  const content: ReadContent = (file, path) => folder.read(path, { hash: file.hash });
  return { before: { content }, after: target, changes };
}

function entriesOf(
  changes: ReturnType<typeof diffTrees>,
  side: 'before' | 'after',
): readonly (readonly [string, TreeEntry])[] {
  return changes.flatMap((change) => {
    const entry = fileIn(change[side]);
    return entry === undefined ? [] : [[change.path, entry] as const];
  });
}

function fileIn(
  entry: TreeEntry | null | undefined,
): Exclude<TreeEntry, { type: 'folder' }> | undefined {
  return entry === null || entry === undefined || entry.type === 'folder' ? undefined : entry;
}

/** The text of a file as callers may see it; `undefined`: it has none, or is too large to be compared. */
async function textOf(
  spec: AgentSpec,
  found: LoadedState,
  tree: Contents | undefined,
  path: string,
  entry: TreeEntry | undefined,
): Promise<string | undefined> {
  if (entry === undefined) return '';
  if (entry.type !== 'file') return entry.type === 'link' ? entry.target : undefined;
  if (entry.size > maxComparedSize || tree === undefined) return undefined;
  const text = await readText(tree, path, entry);
  if (text === undefined || spec.transform.state === undefined) return text;
  const shown = transformed(spec, found, [{ name: path, parts: [{ text }] }]);
  const [part] = shown.find(({ name }) => name === path)?.parts ?? [];
  return part !== undefined && 'text' in part ? part.text : undefined;
}

async function readText(
  { content }: Contents,
  path: string,
  file: TreeFile,
): Promise<string | undefined> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const texts: string[] = [];
  try {
    for await (const piece of content(file, path)) {
      if (piece.includes(0)) return undefined;
      texts.push(decoder.decode(piece, { stream: true }));
    }
    texts.push(decoder.decode());
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
  return texts.join('');
}

function linesOf(before: string | undefined, after: string | undefined): FileDiff['lines'] {
  if (before === undefined || after === undefined) return undefined;
  if (before === '') return withNumbers(after, 'added');
  if (after === '') return withNumbers(before, 'removed');
  return withContext(diffLines(before, after)).map((line) => ({ ...line }));
}

function withNumbers(text: string, kind: 'added' | 'removed'): FileDiff['lines'] {
  if (text === '') return [];
  const lines = text.endsWith('\n') ? text.slice(0, -1).split('\n') : text.split('\n');
  const number = (at: number) => (kind === 'added' ? { after: at + 1 } : { before: at + 1 });
  return lines.map((line, at) => ({ kind, text: line, ...number(at) }));
}

/** Writes the files of a snapshot into a folder that is new or empty. */
export async function checkout(
  spec: AgentSpec,
  { scope, context }: Omit<FolderOf, 'sessionId'>,
  lookup: Lookup,
  path: string,
): Promise<readonly SkippedPath[]> {
  const { found, hash, reader } = await treeAt(spec, scope, lookup);
  const { sessionId } = found.snapshot;
  const workspace = await workspaceOf(spec, { scope, sessionId, context });
  if (hash === undefined) throw noTree(found.snapshotId);
  return await workspace.checkout(path, await reader.read(hash));
}

function noTree(snapshotId: string): WaymarkError {
  return failedPrecondition(
    `Snapshot "${snapshotId}" has no files: it was saved before its agent had a workspace.`,
  );
}
