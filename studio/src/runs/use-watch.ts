import { useEffect, useState } from 'react';
import type { RunInfo } from '../../../src/client/index.ts';
import { textOf } from '../../../src/protocol/messages/text.ts';
import { agentOf } from '../lib/server.ts';

/** What a run has said so far, while it is watched. */
export interface Watched {
  readonly text: string;
  readonly resets: number;
  readonly fault?: string;
}

const maxText = 20_000;

/** Follows a run from its first event; nothing while `run` is absent. */
export function useWatch(run: Pick<RunInfo, 'agent' | 'snapshotId'> | undefined): Watched {
  const [watched, setWatched] = useState<Watched>({ text: '', resets: 0 });
  const { agent, snapshotId } = run ?? {};
  useEffect(() => {
    if (agent === undefined || snapshotId === undefined) return;
    const leaving = new AbortController();
    setWatched({ text: '', resets: 0 });
    const follow = async (): Promise<void> => {
      for await (const event of agentOf(agent).watch(snapshotId, { signal: leaving.signal })) {
        if (leaving.signal.aborted) return;
        if (event.type === 'reset') setWatched(({ resets }) => ({ text: '', resets: resets + 1 }));
        if (event.type !== 'chunk') continue;
        const said = textOf(event.chunk.modelChunk);
        if (said)
          setWatched((before) => ({ ...before, text: (before.text + said).slice(-maxText) }));
      }
    };
    follow().catch((error: unknown) => {
      if (leaving.signal.aborted) return;
      const fault = error instanceof Error ? error.message : String(error);
      setWatched((before) => ({ ...before, fault }));
    });
    return () => leaving.abort();
  }, [agent, snapshotId]);
  return watched;
}
