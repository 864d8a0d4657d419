import type { WorkspaceSpec } from '../agent/contract/spec.ts';
import type { Workspace } from '../workspace/contract/contract.ts';

/** Workspaces for turns that run again: each session works on a copy of its files, in a temporary folder. */
export interface ScratchWorkspaces extends AsyncDisposable {
  /** The workspace in the place of an agent's own; `undefined` if the agent has none. */
  of(workspace: WorkspaceSpec | undefined): WorkspaceSpec | undefined;
}

export function scratchWorkspaces(): ScratchWorkspaces {
  let opened: Promise<{ readonly path: string; readonly workspace: Workspace }> | undefined;
  const open = async () => {
    const { mkdtemp } = await import('node:fs/promises');
    const { tmpdir } = await import('node:os');
    const { join } = await import('node:path');
    const { directory } = await import('../workspace/directory.ts');
    const path = await mkdtemp(join(tmpdir(), 'waymark-replay-'));
    return { path, workspace: directory.perSession({ in: path }) };
  };
  return {
    of(workspace) {
      if (workspace === undefined) return undefined;
      return {
        ...workspace,
        async from() {
          opened ??= open();
          return (await opened).workspace;
        },
      };
    },
    async [Symbol.asyncDispose]() {
      if (opened === undefined) return;
      const { rm } = await import('node:fs/promises');
      await rm((await opened).path, { recursive: true, force: true });
    },
  };
}
