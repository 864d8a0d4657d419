/**
 * Folders whose files belong to the snapshots, and tools to work on them.
 *
 * @module
 */

export type {
  ApplyOptions,
  ExecuteOptions,
  ExecuteResult,
  LockOptions,
  LockOwner,
  ReadContent,
  ScanOptions,
  SkippedPath,
  TreeChange,
  TreeEntry,
  TreeFile,
  TreeFolder,
  TreeLink,
  TreeSource,
  Workspace,
  WorkspaceFolder,
  WorkspaceLock,
  WorkspaceScan,
  WorkspaceSession,
} from './contract/contract.ts';
export { type DirectoryOptions, directory, type PerSessionOptions } from './directory.ts';
export { type MemoryWorkspaceOptions, memoryWorkspace } from './memory.ts';
export type { WorkspaceToolsOptions } from './shell-tool.ts';
export { workspaceTools } from './tools.ts';
