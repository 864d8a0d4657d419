import type { MemoryNote, MemoryPlace, MemoryVersion } from '../contract/store.ts';
import { deletedFrom } from '../rules/memory.ts';

/** A stored version, with the key of its scope. */
export interface StoredVersion extends MemoryVersion {
  readonly scope: string;
}

/** The note of a snapshot, or of the checkpoint of a run. */
export interface StoredNote extends MemoryNote {
  readonly snapshotId: string;
  readonly agent: string;
  readonly sessionId: string;
  readonly createdAt: number;
}

/** The place of a session. */
export interface StoredPlace extends MemoryPlace {
  readonly agent: string;
  readonly sessionId: string;
}

/** Rows that are added in one step. */
export interface MemoryChange {
  readonly places?: readonly StoredPlace[];
  readonly versions?: readonly StoredVersion[];
  readonly notes?: readonly StoredNote[];
}

/** The memory that one owner has written. */
export class MemoryRows {
  readonly #scopes = new Map<string, StoredVersion[]>();
  readonly #notes = new Map<string, StoredNote>();
  readonly #places = new Map<string, StoredPlace>();
  /** The highest number in each lane. */
  readonly #last = new Map<string, number>();
  /** The highest number of a version. */
  lastNo = 0;

  apply({ places = [], versions = [], notes = [] }: MemoryChange): void {
    for (const place of places) this.#places.set(keyOf(place), place);
    for (const version of versions) {
      const known = this.#scopes.get(version.scope);
      if (known === undefined) this.#scopes.set(version.scope, [version]);
      else known.push(version);
      this.lastNo = Math.max(this.lastNo, version.no);
      if (version.source === undefined) continue;
      const { lane, seq } = version.source;
      this.#last.set(lane, Math.max(seq, this.#last.get(lane) ?? 0));
    }
    for (const note of notes) this.#notes.set(note.snapshotId, note);
  }

  /** Everything, as one change. */
  all(): Required<MemoryChange> {
    const versions = [...this.#scopes.values()].flat().sort((a, b) => a.no - b.no);
    return { places: [...this.#places.values()], versions, notes: [...this.#notes.values()] };
  }

  versions(scope: string): readonly StoredVersion[] {
    return this.#scopes.get(scope) ?? [];
  }

  note(snapshotId: string): StoredNote | undefined {
    return this.#notes.get(snapshotId);
  }

  place(session: Pick<StoredPlace, 'agent' | 'sessionId'>): StoredPlace | undefined {
    return this.#places.get(keyOf(session));
  }

  places(): Iterable<StoredPlace> {
    return this.#places.values();
  }

  last(lane: string | undefined): number {
    return this.#last.get(lane ?? '') ?? 0;
  }

  /** Removes the versions of entries from a number on, in one scope or in all. Returns whether there were any. */
  dropVersions(from: ReadonlyMap<string, number>, only?: string): boolean {
    let hasDropped = false;
    for (const [scope, versions] of this.#scopes) {
      if (only !== undefined && scope !== only) continue;
      const kept = versions.filter(({ entry, no }) => no < (from.get(entry) ?? no + 1));
      if (kept.length === versions.length) continue;
      hasDropped = true;
      if (kept.length === 0) this.#scopes.delete(scope);
      else this.#scopes.set(scope, kept);
    }
    return hasDropped;
  }

  /** Removes what is known of sessions, besides their versions. */
  dropSessions(sessions: ReadonlySet<string>): boolean {
    const before = this.#places.size + this.#notes.size;
    for (const key of sessions) this.#places.delete(key);
    for (const [id, note] of this.#notes) if (sessions.has(keyOf(note))) this.#notes.delete(id);
    return this.#places.size + this.#notes.size < before;
  }

  dropNote(snapshotId: string): boolean {
    return this.#notes.delete(snapshotId);
  }
}

/** Tells the sessions of an owner apart. */
export function keyOf({ agent, sessionId }: Pick<StoredPlace, 'agent' | 'sessionId'>): string {
  return JSON.stringify([agent, sessionId]);
}

/** The memory of all owners; an empty name is no owner. */
export class MemoryOwners {
  readonly #owners = new Map<string, MemoryRows>();

  of(owner: string): MemoryRows {
    const known = this.#owners.get(owner);
    if (known !== undefined) return known;
    const rows = new MemoryRows();
    this.#owners.set(owner, rows);
    return rows;
  }

  owners(): readonly string[] {
    return [...this.#owners.keys()];
  }

  apply(owner: string, change: MemoryChange): void {
    this.of(owner).apply(change);
  }

  /** Called after rows of an owner were removed. */
  removed(_owner: string): void {}

  eraseOwner(owner: string): void {
    const rows = this.of(owner);
    dropVersions(this, rows.all().versions);
    this.#owners.delete(owner);
  }
}

/** A table of memory: in memory, or in files. */
export type MemoryTable = Pick<MemoryOwners, 'of' | 'owners' | 'apply' | 'removed' | 'eraseOwner'>;

/** Removes versions, and the later ones of their entries, of all owners. */
export function dropVersions(table: MemoryTable, versions: readonly StoredVersion[]): void {
  const from = deletedFrom(versions);
  if (from.size === 0) return;
  for (const owner of table.owners()) {
    if (table.of(owner).dropVersions(from)) table.removed(owner);
  }
}
