import type {
  ClaimRequest,
  CommitWrite,
  EventCursor,
  RunRef,
  Scope,
} from '../../contract/store.ts';
import type { ClaimDecision } from '../../rules/decide-claim.ts';
import type { CommitDecision } from '../../rules/decide-commit.ts';
import type { Location } from '../history/location.ts';
import type { StateContext } from '../history/state-rows.ts';
import { code } from '../values/codes.ts';
import { scopeKey } from '../values/scope.ts';
import { type CommitRow, type ReadCommit, toFacts } from './commit-facts.ts';

/** A context of the state and runs of a store. */
export interface RunContext extends StateContext {
  readonly known: KnownRuns;
}

interface KnownRun {
  readonly row: CommitRow;
  /** The snapshot that the columns of the parent are of. */
  readonly parentId: string | undefined;
}

/**
 * The rows of the runs that this process has claimed, as its writes have left them, so that a commit can be decided without reading
 * them. They may be out of date: the guard of the write compares them.
 */
export class KnownRuns {
  readonly #runs = new Map<string, KnownRun>();

  /** Notes a run that was accepted. */
  claimed(
    scope: Scope,
    { runId, sessionId }: ClaimRequest,
    { start, head, nextIndex }: ClaimDecision<number, unknown>,
    { session, branchEnd }: { readonly session: number; readonly branchEnd: number | null },
  ): void {
    const [owner, agent] = scopeKey(scope);
    const base = start?.key ?? null;
    const row: CommitRow = {
      session,
      owner,
      agent,
      session_id: sessionId,
      start: base,
      base,
      checkpoint: null,
      inputs_done: 0,
      own_snapshot: null,
      own_idx: null,
      own_parent: null,
      own_parent_id: null,
      claimed_from: null,
      claimed_from_id: null,
      has_steps: 0,
      inbox: 0,
      last_event: null,
      head: head?.key ?? null,
      head_idx: indexOf(head),
      next_index: nextIndex,
      branch_end: branchEnd,
      has_base: 0,
      parent_row_id: base,
      parent_session: start && session,
      parent_status: start && code.succeeded,
      parent_idx: indexOf(start),
      parent_parent: start?.parent ?? null,
      parent_parent_id: null,
      is_taken: 0,
    };
    this.#runs.set(runId, { row, parentId: start?.snapshotId });
  }

  /** The facts of a commit; `undefined` when they must be read. */
  find(
    { runId }: RunRef,
    { parentId, steered = 0 }: CommitWrite,
    from: Location | undefined,
  ): ReadCommit | undefined {
    const known = this.#runs.get(runId);
    if (known === undefined || known.parentId !== parentId || steered > 0) return undefined;
    // The id of what an unlisted parent hangs on is not known.
    if (parentId !== undefined && known.row.parent_idx === null) return undefined;
    const row = { ...known.row, has_base: from?.view === undefined ? 0 : 1 };
    return { facts: { ...toFacts(runId, row), inbox: 0 }, row, left: undefined, isExpected: true };
  }

  /** Notes a commit after which the run continues. */
  continued(
    { runId }: RunRef,
    { row }: ReadCommit,
    { snapshotId, events = [] }: CommitWrite,
    { index, parent, movesHead, nextIndex, run }: CommitDecision<number>,
    rowId: number,
  ): void {
    this.#runs.delete(runId);
    if (typeof run === 'string' || row.own_snapshot !== null) return;
    const last = events.at(-1);
    const next: CommitRow = {
      ...row,
      base: rowId,
      checkpoint: rowId,
      inputs_done: run.inputsDone,
      last_event: last === undefined ? row.last_event : `${last.attempt}:${last.seq}`,
      head: movesHead ? rowId : row.head,
      head_idx: movesHead ? index : row.head_idx,
      next_index: nextIndex,
      branch_end: rowId,
      parent_row_id: rowId,
      parent_session: row.session,
      parent_status: code.succeeded,
      parent_idx: index,
      parent_parent: parent,
    };
    this.#runs.set(runId, { row: next, parentId: snapshotId });
  }

  /** Notes the last event that was appended to a run. */
  appended({ runId }: RunRef, { attempt, seq }: EventCursor): void {
    const known = this.#runs.get(runId);
    if (known === undefined) return;
    this.#runs.set(runId, { ...known, row: { ...known.row, last_event: `${attempt}:${seq}` } });
  }

  /** Drops the facts about a run, which may be out of date or are no longer needed. */
  forget(runId: string): void {
    this.#runs.delete(runId);
  }
}

function indexOf(
  snapshot: { readonly index: number; readonly isListed: boolean } | null,
): number | null {
  return snapshot?.isListed === true ? snapshot.index : null;
}
