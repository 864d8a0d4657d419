import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fakeClock } from 'waymark/testing';
import { storeContract } from 'waymark/testing/contract';
import { jsonStore } from '../../examples/json-store/json-store.ts';

storeContract(
  'json',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'waymark-json-'));
    const path = join(folder, 'store.json');
    const clock = fakeClock('2026-01-01T00:00:00Z');
    return {
      store: jsonStore(path, { clock }),
      reopen: async () => jsonStore(path, { clock }),
      close: () => rm(folder, { recursive: true }),
      advance: (ms) => clock.advance(ms),
      dump: () => readFile(path, 'utf8'),
    };
  },
  { capabilities: ['runs', 'abort', 'events', 'timeline', 'maintenance'], runs: 20 },
);
