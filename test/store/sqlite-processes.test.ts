import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { storeProcesses } from '../support/store-processes.ts';

async function share() {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-sqlite-processes-'));
  return {
    shared: { kind: 'sqlite', path: join(folder, 'store.db') } as const,
    close: () => rm(folder, { recursive: true }),
  };
}

storeProcesses('one SQLite file', share, { processes: 2 });
