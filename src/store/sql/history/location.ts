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

/** The notes that this process has made. A caller's copy is none of them. */
const ours = new WeakSet<object>();

/** Notes where the state in a row lies. The next snapshot hangs on a listed row, or on the parent of one that is not listed. */
export function locationAt(
  snapshot: number,
  { isListed, parent }: { readonly isListed: boolean; readonly parent: number | null },
  state: Pick<Location, 'view' | 'viewRowId' | 'common' | 'custom' | 'artifacts'>,
  database: string,
): Location {
  const { view, viewRowId, custom, artifacts } = state;
  const lineage = isListed ? snapshot : parent;
  const common = isListed ? undefined : state.common;
  const made = { database, snapshot, lineage, view, viewRowId, common, custom, artifacts };
  ours.add(made);
  return made;
}

/** The note of a base, if this database wrote it. Anything else is written as a whole. */
export function locationOf(base: StateBase | undefined, database: string): Location | undefined {
  const ref = base?.ref;
  if (typeof ref !== 'object' || ref === null || !ours.has(ref)) return undefined;
  // Only this module adds notes to the set.
  const location = ref as Location;
  return location.database === database ? location : undefined;
}
