import { useCallback, useEffect, useState } from 'react';
import type { PendingInterrupts } from '../../../src/client/index.ts';
import { pulse } from '../lib/pulse.ts';
import { clientOf } from '../lib/server.ts';
import { useSource } from '../lib/use-source.ts';

/** The newest sessions of all agents that wait for an answer, the oldest of them first, as far as they were asked for. */
export interface Inbox {
  readonly items: readonly PendingInterrupts[];
  readonly isMore: boolean;
  readonly loadMore: () => void;
}

const pageSize = 50;

/** Pending interrupts of all agents, kept up to date with the server; `undefined` until it is known. */
export function useInbox(): Inbox | undefined {
  const { beat } = useSource(pulse);
  const [wanted, setWanted] = useState(pageSize);
  const [read, setRead] = useState<Omit<Inbox, 'loadMore'>>();
  // biome-ignore lint/correctness/useExhaustiveDependencies: every beat is a reason to look again
  useEffect(() => {
    let isCurrent = true;
    readInbox(wanted).then(
      (inbox) => isCurrent && setRead(inbox),
      () => {},
    );
    return () => {
      isCurrent = false;
    };
  }, [wanted, beat]);
  const loadMore = useCallback(() => setWanted((before) => before + pageSize), []);
  return read && { ...read, loadMore };
}

async function readInbox(wanted: number): Promise<Omit<Inbox, 'loadMore'>> {
  const client = clientOf();
  // A session that changes while pages are read may be in two of them.
  const items = new Map<string, PendingInterrupts>();
  let cursor: string | undefined;
  do {
    const page = await client.listInterrupts({
      limit: pageSize,
      ...(cursor !== undefined && { cursor }),
    });
    for (const item of page.items) items.set(JSON.stringify([item.agent, item.sessionId]), item);
    cursor = page.next;
  } while (cursor !== undefined && items.size < wanted);
  return { items: [...items.values()].reverse(), isMore: cursor !== undefined };
}
