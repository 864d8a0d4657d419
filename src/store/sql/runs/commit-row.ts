import type { Snapshot } from '../../../protocol/snapshot.ts';
import type { CommitWrite } from '../../contract/store.ts';
import type { Cipher } from '../content/cipher.ts';
import { type Home, snapshotPlace } from '../content/places.ts';
import type { SqlValue } from '../database/query.ts';
import type { StoredState } from '../history/plan-state.ts';
import type { StateContext } from '../history/state-rows.ts';
import { iso } from '../values/bytes.ts';
import { toEvent, toFinish, toStatus, toTotals, toUsage } from '../values/codes.ts';

/** The columns that a commit fills: what happened. */
export interface Outcome {
  readonly turn: number;
  readonly event: number;
  readonly status: number;
  readonly finish: number | null;
  readonly hash: Uint8Array;
  readonly usage: string | null;
  readonly totals: string | null;
  readonly error: SqlValue;
}

/** The values of the columns that say what happened. */
export function outcomeOf(write: CommitWrite, home: Home, { cipher }: StateContext): Outcome {
  return {
    turn: write.turnIndex,
    event: toEvent(write.event),
    status: toStatus(write.status),
    finish: toFinish(write.finishReason),
    hash: cipher.sealHash(write.stateHash, snapshotPlace('state_hash', home, write.snapshotId)),
    usage: toUsage(write.usage, write.toolCalls),
    totals: toTotals(write.totals),
    error: sealNote(write, snapshotPlace('error', home, write.snapshotId), cipher),
  };
}

/**
 * The value of the column `error`: the error of a failed or aborted turn or, as an edit always succeeds, who made the edit.
 */
export function sealNote(
  { error, edit }: Pick<Snapshot, 'error' | 'edit'>,
  place: string,
  cipher: Cipher,
): SqlValue {
  const note = error ?? edit;
  return note === undefined ? null : cipher.encrypt(JSON.stringify(note), place);
}

/** The columns that say where a state lies. */
export function placeValues({
  view,
  viewRowId,
  length,
  custom,
  artifacts,
}: StoredState): readonly [
  branch: number,
  to: number,
  view: number | null,
  length: number,
  custom: number | null,
  artifacts: number | null,
] {
  return [view.branch, view.to, viewRowId, length, custom?.rowId ?? null, artifacts?.rowId ?? null];
}

/** What is known of a snapshot besides what was asked to be written. */
export interface Written {
  readonly createdAt: number;
  readonly now: number;
  readonly sessionId: string;
  readonly parentId: string | undefined;
  readonly index: number | null;
  readonly orphaned: boolean;
}

/** The metadata of what was written, without reading it back. */
export function snapshotOf(write: CommitWrite, known: Written): Snapshot {
  const { finishReason, error, edit, usage } = write;
  return {
    snapshotId: write.snapshotId,
    sessionId: known.sessionId,
    ...(known.parentId === undefined ? {} : { parentId: known.parentId }),
    index: known.index ?? -1,
    turnIndex: write.turnIndex,
    event: write.event,
    status: write.status,
    ...(finishReason === undefined ? {} : { finishReason }),
    ...(error === undefined ? {} : { error }),
    ...(edit === undefined ? {} : { edit }),
    ...(usage === undefined ? {} : { usage }),
    createdAt: iso(known.createdAt),
    updatedAt: iso(known.now),
    stateHash: write.stateHash,
    orphaned: known.orphaned,
  };
}
