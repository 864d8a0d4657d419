import { useEffect, useState } from 'react';
import type { RemoteAgent, Snapshot } from '../../../src/client/index.ts';

/** A snapshot with its state, once it is there; `undefined` before, and where there is none. */
export function useSnapshot(
  agent: RemoteAgent,
  snapshotId: string | undefined,
  /** A reason to read it again, for one that still changes. */
  version?: unknown,
): Snapshot | undefined {
  const [read, setRead] = useState<Snapshot>();
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new version is a reason to read again
  useEffect(() => {
    if (snapshotId === undefined) return;
    let isCurrent = true;
    // While the user steps through the timeline quickly, load only where they stop.
    const timer = setTimeout(() => {
      agent.getSnapshot({ snapshotId }).then(
        (snapshot) => isCurrent && setRead(snapshot),
        () => {},
      );
    }, 60);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [agent, snapshotId, version]);
  return read?.snapshotId === snapshotId ? read : undefined;
}
