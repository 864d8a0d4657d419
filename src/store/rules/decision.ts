import { isWaymarkError, type WaymarkError } from '../../core/error.ts';

/** The result of a rule: a decision as plain data, or the error that refuses the call. */
export type Decided<Decision> = Decision | WaymarkError;

/** The decision; throws the refusal. */
export function accepted<Decision extends object>(decided: Decided<Decision>): Decision {
  if (isWaymarkError(decided)) throw decided;
  return decided;
}

/** A snapshot as the rules see it. `Key` is the store's own handle of its row. */
export interface SnapshotFact<Key> {
  /** The store's handle of the snapshot. */
  readonly key: Key;
  /** `false`: it is only the session's latest saved state. */
  readonly isListed: boolean;
  /** The listed snapshot that is its parent. */
  readonly parent: Key | null;
}

/** The parent of a snapshot that continues from this one. A state that is not listed is never a parent. */
export function listedParent<Key>(snapshot: SnapshotFact<Key> | null): Key | null {
  if (snapshot === null) return null;
  return snapshot.isListed ? snapshot.key : snapshot.parent;
}
