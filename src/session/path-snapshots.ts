import type { History } from './history.ts';
import type { Marks } from './session-state.ts';

/** A snapshot on the path to a state: how many messages it had, and the chain over them. */
export interface PathSnapshot {
  /** The id of the snapshot. */
  readonly snapshotId: string;
  /** 0: leaves no mark (it has no messages, is not listed, did not succeed, or lies within a turn). */
  readonly length: number;
  /** The hash of its messages. */
  readonly chain: () => string;
}

/**
 * Which message of a history was the last of which turn, by the snapshots on its path, root first. A snapshot whose
 * messages are no longer the beginning of this history, because it was trimmed or rewritten since, leaves no mark. Of two
 * that end at the same message the later one counts.
 */
export function pathSnapshotsOf(history: History, path: readonly PathSnapshot[]): Marks {
  const marks = new Map<number, string>();
  for (const { snapshotId, length, chain } of path) {
    if (length === 0 || length > history.length) continue;
    if (history.chain(length) === chain()) marks.set(length - 1, snapshotId);
  }
  return marks;
}
