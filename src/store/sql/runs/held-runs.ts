import type { ClaimRequest, CommitWrite, RunRef } from '../../contract/store.ts';
import type { ClaimDecision, StartFact } from '../../rules/decide-claim.ts';
import type { CommitDecision, CommitFacts } from '../../rules/decide-commit.ts';

/** Where a run stands. */
export interface HeldPlace {
  readonly session: number;
  readonly base: number | null;
  readonly checkpoint: number | null;
  readonly branch_end: number | null;
}

/** Facts of a commit, and where its run stands. */
export interface KnownRun {
  readonly facts: CommitFacts<number>;
  readonly held: HeldPlace;
}

interface Entry extends KnownRun {
  /** The snapshot that the facts of the parent are of. */
  readonly parentId: string | undefined;
}

/**
 * What this process knows of the runs that it has claimed, so that a commit can be decided without asking. It may be out of date: the
 * database compares it before anything is written.
 */
export class HeldRuns {
  readonly #runs = new Map<string, Entry>();

  /** Notes a run that was accepted. */
  claimed(
    { runId, sessionId }: ClaimRequest,
    { start, head, nextIndex }: ClaimDecision<number, unknown>,
    { session, branchEnd }: { readonly session: number; readonly branchEnd: number | null },
  ): void {
    const base = start?.key ?? null;
    this.#runs.set(runId, {
      facts: {
        runId,
        sessionId,
        own: null,
        start: base,
        inputsDone: 0,
        head: head && { key: head.key, isListed: head.isListed },
        nextIndex,
        parent: start && parentFact(start),
        isTaken: false,
      },
      held: { session, base, checkpoint: null, branch_end: branchEnd },
      parentId: start?.snapshotId,
    });
  }

  /** Known facts of a commit; `undefined` when they must be read. */
  find({ runId }: RunRef, { parentId }: CommitWrite): KnownRun | undefined {
    const known = this.#runs.get(runId);
    return known === undefined || known.parentId !== parentId ? undefined : known;
  }

  /** Notes a commit after which the run continues. */
  continued(
    { facts, held }: KnownRun,
    { snapshotId }: CommitWrite,
    { index, parent, movesHead, nextIndex, run }: CommitDecision<number>,
    rowId: number,
  ): void {
    if (typeof run === 'string') return;
    const isListed = index !== null;
    this.#runs.set(facts.runId, {
      facts: {
        ...facts,
        inputsDone: run.inputsDone,
        head: movesHead ? { key: rowId, isListed } : facts.head,
        nextIndex,
        parent: parentFact({ key: rowId, isListed, parent }),
      },
      held: { ...held, base: rowId, checkpoint: rowId, branch_end: rowId },
      parentId: snapshotId,
    });
  }

  /** Forgets a run: what was known of it does not hold any more, or is not needed. */
  forget(runId: string): void {
    this.#runs.delete(runId);
  }
}

function parentFact({
  key,
  isListed,
  parent,
}: Pick<StartFact<number>, 'key' | 'isListed' | 'parent'>): NonNullable<
  CommitFacts<number>['parent']
> {
  return { key, isListed, parent, inSession: true, status: 'succeeded' };
}
