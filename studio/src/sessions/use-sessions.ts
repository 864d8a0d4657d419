import { useCallback, useEffect, useState } from 'react';
import { isWaymarkError, type RemoteAgent, type SessionInfo } from '../../../src/client/index.ts';
import { pulse } from '../lib/pulse.ts';
import { useSource } from '../lib/use-source.ts';
import type { SessionFilterName } from './session-filters.tsx';

/** The sessions of an agent, newest first, as far as they were asked for. */
export interface Sessions {
  readonly items: readonly SessionInfo[];
  readonly hasMore: boolean;
  readonly isLoading: boolean;
  readonly fault: string | undefined;
  readonly loadMore: () => void;
}

const pageSize = 40;

/** Sessions that match a query, kept up to date with the server. */
export function useSessions(
  agent: RemoteAgent,
  query: string,
  filter: SessionFilterName,
): Sessions {
  const { beat } = useSource(pulse);
  const [wanted, setWanted] = useState(pageSize);
  const [shown, setShown] = useState<
    Pick<Sessions, 'items' | 'hasMore' | 'fault'> & { key: string }
  >();
  const key = `${agent.name} ${filter} ${query}`;
  // biome-ignore lint/correctness/useExhaustiveDependencies: every beat is a reason to look again
  useEffect(() => {
    let isCurrent = true;
    readSessions(agent, { query, filter }, wanted).then(
      (read) => isCurrent && setShown({ ...read, fault: undefined, key }),
      (error: unknown) => {
        if (!isCurrent || !isWaymarkError(error) || error.status === 'UNAVAILABLE') return;
        setShown({ items: [], hasMore: false, fault: error.message, key });
      },
    );
    return () => {
      isCurrent = false;
    };
  }, [agent, query, filter, wanted, key, beat]);
  return {
    items: shown?.items ?? [],
    hasMore: shown?.hasMore ?? false,
    fault: shown?.fault,
    isLoading: shown?.key !== key,
    loadMore: useCallback(() => setWanted((before) => before + pageSize), []),
  };
}

async function readSessions(
  agent: RemoteAgent,
  { query, filter }: { readonly query: string; readonly filter: SessionFilterName },
  wanted: number,
): Promise<Pick<Sessions, 'items' | 'hasMore'>> {
  const items: SessionInfo[] = [];
  let cursor: string | undefined;
  do {
    const page = await agent.listSessions({
      limit: Math.min(200, wanted - items.length),
      ...(query !== '' && { query }),
      ...(filter !== 'all' && { [filter]: true }),
      ...(cursor !== undefined && { cursor }),
    });
    items.push(...page.items);
    cursor = page.next;
  } while (cursor !== undefined && items.length < wanted);
  return { items, hasMore: cursor !== undefined };
}
