import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { storeContract } from '../../src/testing/contract.ts';
import { fakeClock } from '../../src/testing/fake-clock.ts';

storeContract(
  'memory',
  async () => {
    const clock = fakeClock('2026-01-01T00:00:00Z');
    return {
      store: memoryStore({ clock }),
      close: async () => {},
      advance: (ms) => clock.advance(ms),
    };
  },
  { durable: false, runs: 40 },
);
