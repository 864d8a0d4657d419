/** What to keep. A snapshot goes when `olderThan` or `keepLast` says so and nothing below keeps it. */
export interface RetentionPolicy {
  /** Keeps the newest n snapshots of each session. */
  readonly keepLast?: number;
  /** Removes snapshots whose last write is older than this number of milliseconds. */
  readonly olderThan?: number;
  /** @default true */
  readonly keepLabelled?: boolean;
  /** Ids of sessions that are never pruned. */
  readonly keepSessions?: readonly string[];
  /** Also deletes sessions whose only remaining snapshot is an old head. @default false */
  readonly dropSessions?: boolean;
}

/** What was deleted. */
export interface PruneReport {
  /** Number of snapshots. */
  readonly snapshots: number;
  /** Number of sessions. */
  readonly sessions: number;
}
