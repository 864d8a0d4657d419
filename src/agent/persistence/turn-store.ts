import type { SnapshotStore, Store } from '../../store/contract/store.ts';
import type { TurnStore } from '../spec/turn-store.ts';
import { claimTurnStore, type TurnStoreOptions } from './claim-turn-store.ts';
import { plainTurnStore } from './plain-turn-store.ts';

/** How an agent reads and writes its sessions in this store. */
export function turnStoreOf(store: Store | SnapshotStore, options: TurnStoreOptions): TurnStore {
  return 'runs' in store && store.runs !== undefined
    ? claimTurnStore(store.runs, options)
    : plainTurnStore(store, options);
}

/** For an agent whose clients hold the state: saves nothing. */
export const clientTurnStore: TurnStore = {
  load: () => Promise.resolve(undefined),
  begin: (_scope, { sessionId }) => Promise.resolve({ sessionId, nextIndex: 0 }),
  commit: () => Promise.reject(new TypeError('A client-managed agent saves nothing.')),
  release: () => Promise.resolve(),
};
