import { useCallback, useState } from 'react';
import type { Message, RemoteAgent, Snapshot } from '../../../src/client/index.ts';
import { pageSize } from '../lib/message-pages.ts';

/** The messages of an older snapshot, of which earlier ones can be loaded. */
export function usePastPages(
  agent: RemoteAgent,
  past: Snapshot | undefined,
): {
  readonly messages: readonly Message[];
  readonly from: number;
  readonly loadEarlier: () => Promise<void>;
} {
  const [loaded, setLoaded] = useState<{
    readonly past: Snapshot;
    readonly messages: readonly Message[];
    readonly from: number;
  }>();
  const pages =
    loaded !== undefined && loaded.past === past
      ? loaded
      : { messages: past?.state?.messages ?? none, from: past?.messageRange?.from ?? 0 };
  const { messages, from } = pages;
  const loadEarlier = useCallback(async () => {
    if (past === undefined || from === 0) return;
    const options = { messages: { last: pageSize, before: from } };
    const { snapshotId } = past;
    const page = await agent.getSnapshot({ snapshotId }, options).catch(() => undefined);
    if (page?.messageRange === undefined) return;
    const earlier = page.state?.messages ?? [];
    setLoaded({ past, messages: [...earlier, ...messages], from: page.messageRange.from });
  }, [agent, past, messages, from]);
  return { messages, from, loadEarlier };
}

const none: readonly Message[] = [];
