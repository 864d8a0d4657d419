import { systemClock } from '../../../core/time/clock.ts';

/** Tells one version of a file from another without reading it. */
export interface FileStamp {
  /** Not known of a file that was just made. */
  readonly inode: bigint | undefined;
  readonly size: number;
  readonly changed: bigint;
  /**
   * Whether a later change would show. Two changes within a tick of the file system's clock have the same time, and a file
   * that takes another's place may have its inode and its size.
   */
  readonly isSettled: boolean;
}

// Longer than a tick of any file system's clock that is worth having.
const settlingTime = 20;

/** The stamp of a file, from what the file system says of it. */
export function toStamp(stat: {
  ino: bigint;
  size: bigint;
  mtimeMs: bigint;
  mtimeNs: bigint;
}): FileStamp {
  const isSettled = systemClock.now() - Number(stat.mtimeMs) > settlingTime;
  return { inode: stat.ino, size: Number(stat.size), changed: stat.mtimeNs, isSettled };
}
