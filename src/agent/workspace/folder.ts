import { failedPrecondition, hasStatus, invalid, type WaymarkError } from '../../core/error.ts';
import type { JsonObject } from '../../core/json/json.ts';
import type { FilePlace, Scope } from '../../store/contract/store.ts';
import { runningOf } from '../../store/rules/errors.ts';
import type {
  LockOptions,
  LockOwner,
  SkippedPath,
  TreeChange,
  Workspace,
  WorkspaceFolder,
  WorkspaceLock,
  WorkspaceScan,
} from '../../workspace/contract/contract.ts';
import { diffTrees } from '../../workspace/contract/tree.ts';
import type { AgentSpec } from '../contract/spec.ts';
import { hashTree, type StoredTree, type TreeStore, treeReader } from './stored-tree.ts';

/** The session whose folder is needed. */
export interface FolderOf {
  readonly scope: Scope;
  readonly sessionId: string;
  readonly context: JsonObject;
}

/** The workspace of a session. */
export async function workspaceOf(
  { name, workspace }: Pick<AgentSpec, 'name' | 'workspace'>,
  { scope, sessionId, context }: FolderOf,
): Promise<Workspace> {
  if (workspace === undefined) {
    throw failedPrecondition(
      `Agent "${name}" has no \`workspace\`, so its sessions have no files.`,
    );
  }
  const { from } = workspace;
  const { owner } = scope;
  const found =
    typeof from === 'function'
      ? await from({ sessionId, agent: name, ...(owner !== undefined && { owner }) }, context)
      : from;
  checkWorkspace(name, found);
  return found;
}

/** Refuses what is no workspace. */
function checkWorkspace(agent: string, value: unknown): asserts value is Workspace {
  const isOne = typeof value === 'object' && value !== null && 'open' in value;
  if (!isOne) {
    throw invalid(
      `The \`workspace\` of agent "${agent}" must be one, such as directory('./project') of waymark/workspace, or a function that returns one.`,
    );
  }
}

/** Opens the folder of a session. One that is created begins with the tree that the session starts from. */
export async function openFolder(
  spec: Pick<AgentSpec, 'name' | 'store'>,
  workspace: Workspace,
  { scope, sessionId }: Pick<FolderOf, 'scope' | 'sessionId'>,
  startTree: { readonly hash: string | undefined; readonly place: FilePlace },
): Promise<WorkspaceFolder> {
  const { hash, place } = startTree;
  const { owner } = scope;
  return await workspace.open({
    agent: spec.name,
    sessionId,
    ...(owner !== undefined && { owner }),
    ...(hash !== undefined && { start: () => treeReader(treesOf(spec), place).read(hash) }),
    ...(spec.store?.paths && { exclude: spec.store.paths }),
  });
}

/** How long the folder of a run that has ended may stay locked, in milliseconds: its snapshot can be read a moment before. */
const releaseTime = 2_000;

/** Locks a folder. While it belongs to another run, the call is refused, unless that run has ended in the meantime. */
export async function lockFolder(
  { store }: Pick<AgentSpec, 'store'>,
  scope: Scope,
  folder: WorkspaceFolder,
  owner: LockOwner,
  options: LockOptions = {},
): Promise<WorkspaceLock> {
  try {
    return await folder.lock(owner, options);
  } catch (error) {
    const running = runningOf(error);
    if (running === undefined || (await store?.runs?.getRun(scope, running))) throw error;
    const timeout = AbortSignal.timeout(releaseTime);
    const signal = options.signal ? AbortSignal.any([options.signal, timeout]) : timeout;
    return await folder.lock(owner, { wait: true, signal }).catch(() => Promise.reject(error));
  }
}

/** The files of an agent's store, which keeps trees: that was checked when the agent was defined. */
export function treesOf({ name, store }: Pick<AgentSpec, 'name' | 'store'>): TreeStore {
  const { files } = store ?? {};
  if (files?.writeTree !== undefined && files.readTree !== undefined) return files as TreeStore;
  throw failedPrecondition(
    `The store of agent "${name}" cannot keep the files of a workspace. Use the memory, file, SQLite or Postgres store.`,
  );
}

/** How often a folder is scanned again because its files change before a tree is written. */
const maxTries = 5;

/**
 * Makes a folder equal to a tree. `keep` saves the files that are there before, also ignored ones that are about to be replaced; it is called
 * again if they change meanwhile. Paths that either tree leaves alone stay as they are.
 */
export async function switchTree(
  folder: WorkspaceFolder,
  { reader, hash }: { readonly reader: ReturnType<typeof treeReader>; readonly hash: string },
  keep: (scan: WorkspaceScan) => Promise<void>,
  signal?: AbortSignal,
): Promise<StoredTree> {
  for (let left = maxTries; ; left--) {
    const { scan, target, changes } = await changesTo(folder, { reader, hash }, signal);
    await keep(scan);
    if (changes.length === 0) return target;
    try {
      await folder.apply(changes, { content: target.content, ...(signal && { signal }) });
      return target;
    } catch (error) {
      if (left === 1 || !hasStatus(error, 'ABORTED') || signal?.aborted) throw error;
    }
  }
}

/** The files of a folder, those of a tree, and the changes that make the folder equal to it. */
export async function changesTo(
  folder: WorkspaceFolder,
  { reader, hash }: { readonly reader: ReturnType<typeof treeReader>; readonly hash: string },
  signal?: AbortSignal,
): Promise<{
  readonly scan: WorkspaceScan;
  readonly target: StoredTree;
  readonly changes: readonly TreeChange[];
}> {
  const found = await folder.scan(signal && { signal });
  // Most folders are equal, and known by their hashes.
  await hashTree(found);
  const target = await reader.read(hash, found.tree);
  const scan = await scanFor(folder, found, target, signal);
  const skipped = [...scan.skipped, ...target.skipped];
  const changes = diffTrees(scan.tree, target.tree).filter((each) => isOurs(each, skipped));
  return { scan, target, changes };
}

/** The files of a folder, together with ignored ones in the place of files of a tree. */
async function scanFor(
  folder: WorkspaceFolder,
  scan: WorkspaceScan,
  { tree }: StoredTree,
  signal: AbortSignal | undefined,
): Promise<WorkspaceScan> {
  const added = diffTrees(scan.tree, tree).flatMap(({ path, before }) =>
    before === null ? path : [],
  );
  return added.length === 0
    ? scan
    : await folder.scan({ ...(signal && { signal }), include: added });
}

/** Whether a path is to be changed: it is not left alone, nor is a folder above it or something in it. */
function isOurs({ path }: TreeChange, skipped: readonly SkippedPath[]): boolean {
  return !skipped.some(
    (each) =>
      each.path === path || path.startsWith(`${each.path}/`) || each.path.startsWith(`${path}/`),
  );
}

export function lockLost(name: string): WaymarkError {
  return failedPrecondition(
    `Another process has taken the workspace "${name}", because this one did not renew its lock in time. The turn was stopped; run it again.`,
  );
}
