import type { Snapshot } from '../../../src/client/index.ts';
import type { AgentView } from '../../../src/react/index.ts';

/** A snapshot of the timeline, or the one on screen, which a long timeline may not have loaded. */
export function knownSnapshot(
  { timeline, past }: Pick<AgentView, 'timeline' | 'past'>,
  snapshotId: string | undefined,
): Snapshot | undefined {
  const found = timeline.find((each) => each.snapshotId === snapshotId);
  return found ?? (past?.snapshotId === snapshotId ? past : undefined);
}
