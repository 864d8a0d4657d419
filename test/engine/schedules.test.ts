import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileStore } from '../../src/store/file/index.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { openSqlite } from '../support/contract-stores.ts';
import { openLibsql } from '../support/libsql.ts';
import { movableClock } from '../support/movable-clock.ts';
import { scheduleSuite } from './support/schedule-suite.ts';

scheduleSuite('memory', async () => {
  const { clock: own, advance } = movableClock();
  const store = memoryStore({ clock: own });
  return { store, advance, reopen: async () => store, close: async () => {} };
});
scheduleSuite('files', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-schedules-'));
  const { clock: own, advance } = movableClock();
  const store = fileStore(folder, { clock: own });
  const close = async () => {
    await store.close?.();
    await rm(folder, { recursive: true });
  };
  return { store, advance, reopen: async () => store, close };
});
scheduleSuite('SQLite', () => openSqlite());
scheduleSuite('encrypted SQLite', () => openSqlite({ keys: [new Uint8Array(32).fill(7)] }));
scheduleSuite('libSQL', () => openLibsql());
