import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../src/core/clock.ts';
import { fileStore } from '../../src/store/file/index.ts';
import type { OpenedStore } from '../../src/testing/store-contract/kit.ts';
import { storeContract } from '../../src/testing/store-contract/store-contract.ts';

storeContract('file', async (): Promise<OpenedStore> => {
  const directory = await mkdtemp(join(tmpdir(), 'waymark-file-'));
  let past = 0;
  const clock = { ...systemClock, now: () => Date.now() + past };
  let store = fileStore(directory, { clock });
  return {
    store,
    async reopen() {
      await store.close?.();
      store = fileStore(directory, { clock });
      return store;
    },
    advance(ms) {
      past += ms;
    },
    async dump() {
      const names = await readdir(directory, { recursive: true, withFileTypes: true });
      const files = names.filter((entry) => entry.isFile());
      const texts = files.map((entry) => readFile(join(entry.parentPath, entry.name), 'latin1'));
      return (await Promise.all(texts)).join('\n');
    },
    async close() {
      await store.close?.();
      await rm(directory, { recursive: true });
    },
  };
});
