import type {
  MemoryEntry,
  MemoryHit,
  MemoryOfTurn,
  MemoryVersionInfo,
} from '../protocol/memory.ts';
import type { Page } from '../protocol/session.ts';
import type { SnapshotRef } from './turn-values.ts';

/** The memory of an agent, for its callers. Without a memory, all calls are FAILED_PRECONDITION. */
export interface AgentMemory<Call extends object = object> {
  /** The visible entries, newest first; with `query`, those that fit it, best first and on one page. With `asOf`, those that were known at a snapshot. */
  list(
    options?: Call & {
      readonly query?: string;
      readonly asOf?: SnapshotRef;
      readonly limit?: number;
      readonly cursor?: string;
    },
  ): Promise<Page<MemoryEntry | MemoryHit>>;
  /** The visible versions of an entry, oldest first. */
  history(id: string, options?: Call): Promise<readonly MemoryVersionInfo[]>;
  /** Adds an entry, if `canWrite` of the memory allows it to the caller. */
  add(value: unknown, options?: Call): Promise<MemoryEntry>;
  /** Replaces the content of an entry, as a new version. */
  update(id: string, value: unknown, options?: Call): Promise<MemoryEntry>;
  /** Deletes an entry with all its versions; `false` if there is none. */
  forget(id: string, options?: Call): Promise<boolean>;
  /** What the turn of a snapshot knew, and what it has learned. */
  ofTurn(snapshot: SnapshotRef, options?: Call): Promise<MemoryOfTurn>;
}
