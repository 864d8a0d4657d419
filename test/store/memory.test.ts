import { memoryStore } from '../../src/session/memory-store/memory-store.ts';
import { storeContract } from '../../src/testing/store-contract/store-contract.ts';

storeContract('memory', async () => {
  let now = Date.parse('2026-01-01T00:00:00Z');
  const clock = { now: () => now, sleep: async () => {}, every: () => () => {} };
  return {
    store: memoryStore({ clock }),
    close: async () => {},
    advance: (ms) => {
      now += ms;
    },
  };
});
