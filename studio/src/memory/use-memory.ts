import { useEffect, useState } from 'react';
import type { MemoryEntry, MemoryHit } from '../../../src/client/index.ts';
import { pulse } from '../lib/pulse.ts';
import { agentOf } from '../lib/server.ts';
import { useSource } from '../lib/use-source.ts';

/** The entries of an agent's memory, as far as they were asked for. */
export interface ListedMemory {
  readonly items: readonly (MemoryEntry | MemoryHit)[];
  readonly isMore: boolean;
  /** Why they cannot be listed. */
  readonly fault?: string;
}

/** The entries that fit a query, or the newest ones; kept up to date. `undefined` until they are known. */
export function useMemory(
  agent: string,
  query: string,
  limit: number,
): readonly [ListedMemory | undefined, () => void] {
  const { beat } = useSource(pulse);
  const [changes, setChanges] = useState(0);
  const [listed, setListed] = useState<ListedMemory>();
  // biome-ignore lint/correctness/useExhaustiveDependencies: every beat and every change is a reason to look again
  useEffect(() => {
    let isCurrent = true;
    const asked = query.trim() === '' ? {} : { query };
    agentOf(agent)
      .memory.list({ limit, ...asked })
      .then(
        ({ items, next }) => isCurrent && setListed({ items, isMore: next !== undefined }),
        (error: unknown) =>
          isCurrent && setListed({ items: [], isMore: false, fault: String(error) }),
      );
    return () => {
      isCurrent = false;
    };
  }, [agent, query, limit, beat, changes]);
  return [listed, () => setChanges((before) => before + 1)];
}
