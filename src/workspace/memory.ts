import { createHash, randomUUID } from 'node:crypto';
import { checkOptions } from '../core/options.ts';
import type { TreeFolder, TreeSource, Workspace, WorkspaceFolder } from './contract/contract.ts';
import { checkTreePath } from './contract/paths.ts';
import { emptyTree, walkTree, withEntry } from './contract/tree.ts';
import { checkEmpty, createFolder } from './create-folder.ts';
import { MemoryFolder } from './memory-folder.ts';
import { openFolder } from './open-folder.ts';
import { defaultLimits } from './scan-run.ts';

/** Options of {@link memoryWorkspace}. */
export interface MemoryWorkspaceOptions {
  /** The files that a folder begins with: contents by path. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  /** Whether each session has separate files. @default false */
  readonly perSession?: boolean;
}

/**
 * A workspace in memory, for tests and for agents whose files need no disk. Its files are lost with the process; snapshots keep them.
 *
 * @example
 * const writer = app.defineAgent({ name: 'writer', workspace: memoryWorkspace(), tools: [workspaceTools()] });
 */
export function memoryWorkspace(options: MemoryWorkspaceOptions = {}): Workspace {
  checkOptions(options, { files: 'object', perSession: 'boolean' }, 'memoryWorkspace()');
  const { files = {}, perSession = false } = options;
  const name = 'memory';
  const template = templateOf(files);
  const folders = new Map<string, Promise<MemoryFolder>>();
  return {
    name,
    isPerSession: perSession,
    open({ agent, owner, sessionId, start }) {
      const key = perSession ? JSON.stringify([agent, owner ?? null, sessionId]) : '';
      const folder = folders.get(key) ?? create(template, perSession ? start?.() : undefined);
      folders.set(key, folder);
      folder.catch(() => folders.delete(key));
      return folder;
    },
    async checkout(path, source) {
      await checkEmpty(path, name);
      const settings = { workspace: name, limits: defaultLimits, exclude: [] };
      const open = (each: string): Promise<WorkspaceFolder> => openFolder(each, settings);
      return await createFolder(path, { workspace: name, source, open });
    },
  };
}

interface Template {
  readonly tree: TreeFolder;
  readonly contents: ReadonlyMap<string, Uint8Array>;
}

function templateOf(files: Readonly<Record<string, string | Uint8Array>>): Template {
  const contents = new Map<string, Uint8Array>();
  let tree = emptyTree;
  for (const [path, content] of Object.entries(files)) {
    checkTreePath(path);
    const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content.slice();
    const hash = createHash('sha256').update(bytes).digest('hex');
    contents.set(hash, bytes);
    tree = withEntry(tree, path, { type: 'file', hash, size: bytes.length });
  }
  return { tree, contents };
}

async function create(
  { tree, contents }: Template,
  start: Promise<TreeSource | undefined> | undefined,
): Promise<MemoryFolder> {
  const source = await start;
  const folder = new MemoryFolder(`memory:${randomUUID()}`, { tree, contents });
  if (source === undefined) return folder;
  for (const [path, entry] of walkTree(source.tree)) {
    if (entry.type === 'file')
      await folder.store(source.content(entry, path), { file: entry, path });
  }
  folder.replace(source.tree);
  return folder;
}
