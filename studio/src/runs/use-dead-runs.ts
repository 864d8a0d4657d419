import { useCallback, useEffect, useState } from 'react';
import type { DeadRun } from '../../../src/client/index.ts';
import { lookNow, pulse } from '../lib/pulse.ts';
import { agentOf } from '../lib/server.ts';
import { useSource } from '../lib/use-source.ts';
import { toast } from '../ui/toasts.tsx';

/** The runs that were given up, and how to begin one again. */
export interface DeadRuns {
  readonly items: readonly DeadRun[];
  readonly retry: (run: DeadRun) => Promise<void>;
}

/** Milliseconds between two looks: nothing is given up often. */
const pace = 5_000;

/** The runs of these agents that were given up; looked for while this is on the screen. */
export function useDeadRuns(agents: readonly string[]): DeadRuns {
  const [items, setItems] = useState<readonly DeadRun[]>([]);
  const { returns } = useSource(pulse);
  const names = agents.join(' ');
  const look = useCallback(async () => {
    const all = names.split(' ').filter(Boolean);
    // A server of another version knows no such list.
    const lists = all.map((name) =>
      agentOf(name)
        .listDeadRuns()
        .then(({ items }) => items)
        .catch(() => []),
    );
    return (await Promise.all(lists)).flat().sort((a, b) => (a.since < b.since ? 1 : -1));
  }, [names]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a server that comes back is a reason to look again
  useEffect(() => {
    let isCurrent = true;
    const show = (): void => void look().then((found) => isCurrent && setItems(found));
    show();
    const timer = setInterval(() => !document.hidden && show(), pace);
    return () => {
      isCurrent = false;
      clearInterval(timer);
    };
  }, [look, returns]);
  const retry = useCallback(
    async ({ agent, snapshotId }: DeadRun) => {
      try {
        await agentOf(agent).retryRun(snapshotId);
        toast({ text: 'Retried, with its remaining inputs.' });
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        toast({ text: `Could not retry. ${reason}`, isFault: true });
      }
      setItems(await look());
      lookNow();
    },
    [look],
  );
  return { items, retry };
}
