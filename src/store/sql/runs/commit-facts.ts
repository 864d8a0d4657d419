import type { CommitFacts } from '../../rules/decide-commit.ts';
import { uuidText } from '../values/bytes.ts';
import { fromStatus } from '../values/codes.ts';
import type { OpenRun } from './open-run.ts';

/** What the rules of a commit have to know, by the row ids of snapshots. */
export function commitFacts(held: OpenRun): CommitFacts<number> {
  return {
    runId: uuidText(held.id),
    sessionId: held.session_id,
    own:
      held.own_snapshot === null
        ? null
        : { key: held.own_snapshot, index: held.own_idx ?? -1, parent: held.own_parent },
    start:
      held.start === null
        ? null
        : { key: held.start, isListed: held.start_idx !== null, parent: held.start_parent },
    inputsDone: held.inputs_done,
    head: held.head === null ? null : { key: held.head, isListed: held.head_idx !== null },
    nextIndex: held.next_index,
    parent:
      held.parent_row_id === null || held.parent_status === null
        ? null
        : {
            key: held.parent_row_id,
            isListed: held.parent_idx !== null,
            parent: held.parent_parent,
            inSession: held.parent_session === held.session,
            status: fromStatus(held.parent_status),
          },
    isTaken: held.is_taken === 1,
  };
}

/** The id of a snapshot that a commit may hang on. */
export function parentIdOf(held: OpenRun, rowId: number | null): Uint8Array | null {
  if (rowId === null) return null;
  if (rowId === held.parent_row_id) return held.parent_id;
  if (rowId === held.parent_parent) return held.parent_parent_id;
  if (rowId === held.own_parent) return held.own_parent_id;
  return rowId === held.start ? held.start_id : held.start_parent_id;
}
