import { useEffect, useState } from 'react';
import type { PendingInterrupts } from '../../../src/client/index.ts';
import { pulse } from '../lib/pulse.ts';
import { agentOf } from '../lib/server.ts';
import { useSource } from '../lib/use-source.ts';

/** The sessions of all agents that wait for an answer, the oldest first; `undefined` until they are known. */
export function useInbox(agents: readonly string[]): readonly PendingInterrupts[] | undefined {
  const { beat } = useSource(pulse);
  const [items, setItems] = useState<readonly PendingInterrupts[]>();
  const names = agents.join('\n');
  // biome-ignore lint/correctness/useExhaustiveDependencies: every beat is a reason to look again
  useEffect(() => {
    let isCurrent = true;
    readInbox(names === '' ? [] : names.split('\n')).then(
      (read) => isCurrent && setItems(read),
      () => {},
    );
    return () => {
      isCurrent = false;
    };
  }, [names, beat]);
  return items;
}

/** At most this many of each agent: a longer list is for the API. */
const mostOfAgent = 50;

async function readInbox(agents: readonly string[]): Promise<readonly PendingInterrupts[]> {
  const pages = await Promise.all(
    agents.map((name) => agentOf(name).listInterrupts({ limit: mostOfAgent })),
  );
  return pages.flatMap(({ items }) => items).sort((a, b) => (a.since < b.since ? -1 : 1));
}
