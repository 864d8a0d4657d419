import type { WorkspaceFolder } from '../../workspace/contract/contract.ts';

type Wrap = (folder: WorkspaceFolder) => WorkspaceFolder;

/** The editors in which sessions are open, by session. */
const editors = new Map<string, Wrap>();

/**
 * Lets the tools of a session read and write through an editor. Capturing and restoring do not: the snapshot has what is on the disk.
 * Returns a function that ends it.
 */
export function throughEditor(sessionId: string, wrap: Wrap): () => void {
  editors.set(sessionId, wrap);
  return () => {
    if (editors.get(sessionId) === wrap) editors.delete(sessionId);
  };
}

/** The turn in which a tool is called, and those that it works for. */
interface Invocation {
  readonly files: { readonly folder: WorkspaceFolder } | undefined;
  readonly position: { readonly sessionId: string };
  readonly request: { readonly parent?: Invocation | undefined };
}

/** The folder for the tools of a turn; that of the agent that a sub-agent without a workspace works for. */
export function toolFolder(invocation: Invocation | undefined): {
  readonly workspace?: WorkspaceFolder;
} {
  let folder: WorkspaceFolder | undefined;
  let root = invocation;
  for (let at = invocation; at; at = at.request.parent) {
    folder ??= at.files?.folder;
    root = at;
  }
  if (folder === undefined) return {};
  const wrap = editors.size > 0 && root ? editors.get(root.position.sessionId) : undefined;
  return { workspace: wrap ? wrap(folder) : folder };
}
