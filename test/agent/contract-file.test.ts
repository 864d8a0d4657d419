import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileStore } from '../../src/store/file/index.ts';
import { agentContract } from '../../src/testing/agent-contract/agent-contract.ts';

agentContract('in process over a file store', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-contract-'));
  return {
    store: fileStore(folder),
    reopen: async () => fileStore(folder),
    close: () => rm(folder, { recursive: true }),
  };
});
