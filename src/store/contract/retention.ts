/** What to keep. A snapshot goes when `olderThan` or `keepLast` says so and nothing below keeps it. */
export interface RetentionPolicy {
  /** Per session, the newest n snapshots stay. */
  readonly keepLast?: number;
  /** Milliseconds since the last write. */
  readonly olderThan?: number;
  /** @default true */
  readonly keepLabelled?: boolean;
  /** Whole sessions that never go, by id. */
  readonly keepSessions?: readonly string[];
  /** Also drops sessions of which nothing but an old head would be left. @default false */
  readonly dropSessions?: boolean;
}

export interface PruneReport {
  readonly snapshots: number;
  readonly sessions: number;
}
