import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MaintenanceSupport } from '../../store/contract/store.ts';
import { openStore, parseStore } from './open-store.ts';

/**
 * Runs maintenance on a temporary copy of a store, so that its result is known before anything is deleted. `undefined` for
 * Postgres, which cannot be copied to a file that is a store.
 */
export async function rehearse<Result>(
  spec: string,
  cwd: string,
  work: (maintenance: MaintenanceSupport) => Promise<Result>,
): Promise<Result | undefined> {
  const store = parseStore(spec, cwd);
  if (store.kind === 'postgres') return undefined;
  const folder = await mkdtemp(join(tmpdir(), 'waymark-dry-run-'));
  const copy = join(folder, 'copy');
  try {
    if (store.kind === 'sqlite') {
      await (await import('../../store/sqlite/index.ts')).backupSqlite(store.path, copy);
    } else {
      await (await import('../../store/file/index.ts')).backupFiles(store.path, copy);
    }
    const open = await openStore({ store: `${store.kind}:${copy}` }, { cwd });
    try {
      return await work(open.maintenance);
    } finally {
      await open.close();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
