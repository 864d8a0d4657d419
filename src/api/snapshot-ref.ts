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
    'The turn saved no snapshot: the agent has no store, or its policy saves none.',
  );
}

/** The id of a session: of an output, a snapshot, a session, or the id itself. */
export function sessionIdOf<Id extends string | undefined>(
  ref: Id | { readonly sessionId: string },
): Id | string {
  // Anything that is not an id is refused where ids are checked.
  return (ref as { readonly sessionId?: string } | null)?.sessionId ?? (ref as Id);
}
