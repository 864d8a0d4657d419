import { WaymarkError } from '../core/error.ts';

/** Identifies a snapshot: its id, the snapshot itself, or the output of the turn that saved it. */
export type SnapshotRef = string | { readonly snapshotId?: string | undefined };

/** The id of a snapshot, an output or an id. */
export function snapshotIdOf(ref: SnapshotRef): string {
  if (typeof ref !== 'object' || ref === null) return ref;
  // Anything that is not an id is refused where ids are checked.
  if (ref.snapshotId !== undefined || !('sessionId' in ref)) return ref.snapshotId as string;
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    'There is no snapshot to refer to: the turn saved none. An agent without a store, or whose policy saved nothing, has none.',
  );
}
