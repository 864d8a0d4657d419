import type { Scope, StateBase } from '../session/store.ts';

/**
 * The states of sessions that were just used. An entry is right when its snapshot is still the one that a claim says to go
 * on from, so it needs no invalidation, and it is right across processes.
 */
export interface SessionCache {
  get(scope: Scope, sessionId: string): StateBase | undefined;
  set(scope: Scope, sessionId: string, base: StateBase): void;
  delete(scope: Scope, sessionId: string): void;
}

/** A cache that forgets what was used least recently. */
export function createSessionCache(size: number): SessionCache {
  const entries = new Map<string, StateBase>();
  const keyOf = ({ owner = '', agent }: Scope, sessionId: string): string =>
    JSON.stringify([owner, agent, sessionId]);
  return {
    get(scope, sessionId) {
      const key = keyOf(scope, sessionId);
      const base = entries.get(key);
      if (base !== undefined) {
        entries.delete(key);
        entries.set(key, base);
      }
      return base;
    },
    set(scope, sessionId, base) {
      const key = keyOf(scope, sessionId);
      entries.delete(key);
      entries.set(key, base);
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
