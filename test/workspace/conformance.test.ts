import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { workspaceContract } from 'waymark/testing/contract';
import { directory, memoryWorkspace, type Workspace } from 'waymark/workspace';

const long = process.env.LONG === '1';

const opener = (make: (folder: string) => Workspace) => async () => {
  const base = mkdtempSync(join(tmpdir(), 'waymark-workspace-'));
  return {
    workspace: make(base),
    newPath: async () => join(base, 'new'),
    close: async () => rmSync(base, { recursive: true }),
  };
};

const shared = opener((base) => {
  const path = join(base, 'shared');
  mkdirSync(path);
  return directory(path);
});
const runs = long ? 300 : 15;
workspaceContract('directory', shared, { runs });
workspaceContract(
  'directory.perSession',
  opener((base) => directory.perSession({ in: join(base, 'sessions') })),
  { runs: 3 },
);
workspaceContract(
  'memory',
  opener(() => memoryWorkspace()),
  { runs },
);
workspaceContract(
  'memory per session',
  opener(() => memoryWorkspace({ perSession: true })),
  { runs: 3 },
);
