import type { StateBase } from '../../contract/store.ts';
import type { DocumentRef } from '../content/document.ts';
import type { ManifestRef } from '../content/manifest.ts';
import type { View } from './segments.ts';

/**
 * Where a state lies: the note that {@link StateBase.ref} carries, so that the next write needs to read nothing. It stays
 * right as long as its snapshot exists, because rows are never changed or renumbered.
 */
export interface Location {
  /** The database it is of; numbers of another one mean nothing here. */
  readonly database: string;
  /** The row in `snapshots`. */
  readonly snapshot: number;
  /** The parent of a snapshot that continues from this one: itself, or its parent when it is not listed. */
  readonly lineage: number | null;
  /** Messages; `undefined` while there is no branch yet. */
  readonly view: View | undefined;
  /** The row in `views` when the history was rewritten on this branch. */
  readonly viewRowId: number | null;
  /** For a rewritten state that is not listed: how much of its lineage's history is left at its beginning. */
  readonly common: number | undefined;
  readonly custom: DocumentRef | undefined;
  readonly artifacts: ManifestRef | undefined;
}

/** A note of ours: nothing else has its private field. */
class OwnLocation implements Location {
  readonly #isOurs = true;
  readonly database: string;
  readonly snapshot: number;
  readonly lineage: number | null;
  readonly view: View | undefined;
  readonly viewRowId: number | null;
  readonly common: number | undefined;
  readonly custom: DocumentRef | undefined;
  readonly artifacts: ManifestRef | undefined;

  constructor(location: Location) {
    this.database = location.database;
    this.snapshot = location.snapshot;
    this.lineage = location.lineage;
    this.view = location.view;
    this.viewRowId = location.viewRowId;
    this.common = location.common;
    this.custom = location.custom;
    this.artifacts = location.artifacts;
  }

  static is(ref: object): ref is OwnLocation {
    return #isOurs in ref;
  }
}

/** Marks a note as one of ours. */
export function asLocation(location: Location): Location {
  return new OwnLocation(location);
}

/** The note of a base, if this database wrote it. Anything else is written as a whole. */
export function locationOf(base: StateBase | undefined, database: string): Location | undefined {
  const ref = base?.ref;
  if (typeof ref !== 'object' || ref === null || !OwnLocation.is(ref)) return undefined;
  return ref.database === database ? ref : undefined;
}
