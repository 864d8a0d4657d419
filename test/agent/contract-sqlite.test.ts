import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { agentContract } from '../../src/testing/agent-contract/agent-contract.ts';
import { writeEmptySqlite } from '../support/empty-sqlite.ts';

agentContract('in process over a SQLite store', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-contract-'));
  const path = join(folder, 'agents.db');
  await writeEmptySqlite(path);
  return {
    store: sqliteStore(path),
    reopen: async () => sqliteStore(path),
    close: () => rm(folder, { recursive: true }),
  };
});
