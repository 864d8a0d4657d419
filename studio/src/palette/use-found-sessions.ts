import { useEffect, useState } from 'react';
import type { AgentInfo, SessionInfo } from '../../../src/client/index.ts';
import { agentOf } from '../lib/server.ts';

/** At most this many sessions are shown; more words find fewer. */
const maxFound = 8;

/** How long to wait for the next letter before the store is asked, in milliseconds. */
const pause = 120;

/** The latest sessions of all agents that the search of their store finds. */
export function useFoundSessions(
  agents: readonly AgentInfo[],
  query: string,
): readonly SessionInfo[] {
  const [found, setFound] = useState<readonly SessionInfo[]>([]);
  useEffect(() => {
    let isCurrent = true;
    const timer = setTimeout(
      () => void findSessions(agents, query).then((read) => isCurrent && setFound(read)),
      query === '' ? 0 : pause,
    );
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [agents, query]);
  return found;
}

async function findSessions(
  agents: readonly AgentInfo[],
  query: string,
): Promise<readonly SessionInfo[]> {
  const options = { limit: maxFound, ...(query !== '' && { query }) };
  const pages = await Promise.all(
    agents
      .filter(({ metadata }) => metadata.timeline)
      .map(({ name }) =>
        agentOf(name)
          .listSessions(options)
          .then(({ items }) => items)
          // One agent whose store fails does not hide the sessions of the others.
          .catch(() => []),
      ),
  );
  return pages
    .flat()
    .sort((a, b) => (a.updatedAt < b.updatedAt ? 1 : -1))
    .slice(0, maxFound);
}
