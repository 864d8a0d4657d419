import type { Json } from '../../core/json/json.ts';
import type { Scope } from './snapshot-store.ts';

/** The entries that one reader of a memory can see: those of an owner, an agent, or the whole app. */
export interface MemoryScope {
  /** The name of the memory and whose entries they are, as one text. */
  readonly key: string;
  /** The owner who wrote all of its versions, if no other owner can write to it. */
  readonly owner?: string;
}

/** A version of an entry. */
export interface NewMemoryVersion {
  /** The key of its {@link MemoryScope}. */
  readonly scope: string;
  /** A unique id. */
  readonly id: string;
  /** The entry that it is a version of. */
  readonly entry: string;
  /** The content; absent: from this version on the entry is forgotten. */
  readonly value?: Json;
}

/** A version that a turn has written. */
export interface TurnMemoryVersion extends NewMemoryVersion {
  /** Its number in the lane of the session. */
  readonly seq: number;
  /** The index of the message whose tool call wrote it. */
  readonly message: number;
}

/** Where a session stands in memory. Each session that writes has a lane, in which its versions are numbered. */
export interface MemoryPlace {
  /** The same for a session and all its forks. */
  readonly family: string;
  /** The lane of this session alone. */
  readonly lane: string;
}

/** The versions of a lane from a number to another one, both included. */
export type MemorySpan = readonly [lane: string, from: number, to: number];

/** The record of a snapshot about memory. */
export interface MemoryNote {
  /** The versions that turns on the path to the snapshot have written. */
  readonly path: readonly MemorySpan[];
  /** The ids of the versions that its turn was given. */
  readonly given: readonly string[];
  /** The versions that the turn of a checkpoint has written so far. */
  readonly pending?: readonly TurnMemoryVersion[];
}

/** A turn's part of memory, saved with its commit or checkpoint. */
export interface MemoryWrite {
  /** The place of the session, with its first versions. A commit that has none leaves the place as it is. */
  readonly place?: MemoryPlace;
  /** New versions, in the order in which they were written. Their source is the snapshot. */
  readonly versions: readonly TurnMemoryVersion[];
  /** The record of the snapshot. It replaces what an earlier checkpoint of the run has recorded. */
  readonly note: MemoryNote;
}

/** The turn that wrote a version. */
export interface MemorySource extends MemoryPlace, Pick<TurnMemoryVersion, 'seq' | 'message'> {
  /** The agent of the session. */
  readonly agent: string;
  /** The session whose turn wrote the version. */
  readonly sessionId: string;
  /** The snapshot of that turn. */
  readonly snapshotId: string;
}

/** A stored version. */
export interface MemoryVersion extends Omit<NewMemoryVersion, 'scope'> {
  /** Its place in the order in which versions were saved. */
  readonly no: number;
  /** The owner who wrote it. */
  readonly owner?: string;
  /** When it was saved, in milliseconds since the epoch. */
  readonly createdAt: number;
  /** The turn that wrote it; absent if it was added outside of a turn. */
  readonly source?: MemorySource;
}

/** Some versions of a scope. */
export interface MemoryPage {
  /** In the order of their numbers. */
  readonly versions: readonly MemoryVersion[];
  /** How many versions the scope has in all; only if these are the last ones. */
  readonly count?: number;
}

/** A session that has, or may have, written to memory. */
export interface MemorySession extends Partial<MemoryPlace> {
  /** The highest number in its lane. */
  readonly last: number;
  /** The head. */
  readonly headId?: string;
}

/** A note as it is read. */
export interface FoundMemoryNote extends MemoryNote {
  /** The family of the snapshot's session, if it has one. */
  readonly family?: string;
  /** When the snapshot was saved, in milliseconds since the epoch. */
  readonly createdAt: number;
}

/** The entries that a session has written to memory, and the records of its snapshots. */
export interface MemoryExport extends MemoryPlace {
  /** The versions that turns of the session wrote. */
  readonly versions: readonly (TurnMemoryVersion & {
    readonly snapshotId: string;
    readonly createdAt: number;
  })[];
  /** The records of the session's snapshots. */
  readonly notes: readonly (MemoryNote & {
    readonly snapshotId: string;
    readonly createdAt: number;
  })[];
}

/** A memory of versions that follow the heads of sessions. Deleting a session deletes its versions, and all later ones of their entries. */
export interface MemorySupport {
  /** The versions of a scope after a number, at most a thousand. */
  read(scope: MemoryScope, after: number): Promise<MemoryPage>;
  /** Adds a version outside of a turn: it has no source. */
  add(version: NewMemoryVersion, owner?: string): Promise<void>;
  /** Deletes entries with all their versions. */
  remove(scope: MemoryScope, entries: readonly string[]): Promise<void>;
  /** Where a session stands in memory. */
  session(scope: Scope, sessionId: string): Promise<MemorySession>;
  /** The note of a snapshot, or of its nearest ancestor that has one; an empty one where none has. `undefined`: this owner has no such snapshot. */
  note(owner: string | undefined, snapshotId: string): Promise<FoundMemoryNote | undefined>;
  /** For each of these families, the paths to the heads of its sessions. */
  heads(
    families: readonly string[],
  ): Promise<ReadonlyMap<string, readonly (readonly MemorySpan[])[]>>;
  /** The entries that a session has written; `undefined` if it has not used memory. */
  exportSession(scope: Scope, sessionId: string): Promise<MemoryExport | undefined>;
  /** Adds what a session has written to a session that was imported. */
  importSession(scope: Scope, sessionId: string, read: MemoryExport): Promise<void>;
}
