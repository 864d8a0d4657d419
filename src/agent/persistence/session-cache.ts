import type { Scope, StateBase } from '../../store/contract/store.ts';

/** A state that was just saved, and the last one on its way that is a snapshot, if there is one. */
export interface CachedState {
  readonly base: StateBase;
  readonly listed: StateBase | undefined;
}

/**
 * The states of sessions that were just used. An entry is right when its snapshot is still the one that a claim says to go
 * on from, so it needs no invalidation, and it is right across processes.
 */
export interface SessionCache {
  get(scope: Scope, sessionId: string): CachedState | undefined;
  set(scope: Scope, sessionId: string, state: CachedState): void;
  delete(scope: Scope, sessionId: string): void;
}

/** A cache that forgets what was used least recently. */
export function createSessionCache(size: number): SessionCache {
  const entries = new Map<string, CachedState>();
  const keyOf = ({ owner = '', agent }: Scope, sessionId: string): string =>
    `${agent}\0${sessionId}\0${owner}`;
  return {
    get(scope, sessionId) {
      const key = keyOf(scope, sessionId);
      const state = entries.get(key);
      if (state !== undefined) {
        entries.delete(key);
        entries.set(key, state);
      }
      return state;
    },
    set(scope, sessionId, state) {
      const key = keyOf(scope, sessionId);
      entries.delete(key);
      entries.set(key, state);
      if (entries.size > size) {
        for (const oldest of entries.keys()) {
          entries.delete(oldest);
          break;
        }
      }
    },
    delete(scope, sessionId) {
      entries.delete(keyOf(scope, sessionId));
    },
  };
}
