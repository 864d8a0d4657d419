import { useEffect, useState } from 'react';
import type { MessagePage, RemoteAgent, Snapshot } from '../../../src/client/index.ts';

/** A snapshot with its state, once it is there; `undefined` before, and where there is none. */
export function useSnapshot(
  agent: RemoteAgent,
  snapshotId: string | undefined,
  options: {
    /** A reason to read it again, for one that still changes. */
    readonly version?: unknown;
    /** Which of its messages are needed. @default all */
    readonly page?: MessagePage;
  } = {},
): Snapshot | undefined {
  const { version, page } = options;
  const [read, setRead] = useState<Snapshot>();
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new version is a reason to read again
  useEffect(() => {
    if (snapshotId === undefined) return;
    let isCurrent = true;
    // While the user steps through the timeline quickly, load only where they stop.
    const timer = setTimeout(() => {
      agent.getSnapshot({ snapshotId }, page && { messages: page }).then(
        (snapshot) => isCurrent && setRead(snapshot),
        () => {},
      );
    }, 60);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [agent, snapshotId, version, page]);
  return read?.snapshotId === snapshotId ? read : undefined;
}
