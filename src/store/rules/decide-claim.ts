import { invalid, WaymarkError } from '../../core/error.ts';
import type { SnapshotStatus } from '../../protocol/snapshot.ts';
import type { FinishReason } from '../../protocol/turn.ts';
import type { Totals } from '../../protocol/usage.ts';
import {
  type Claim,
  type ClaimRequest,
  type ParentRef,
  type RunRef,
  requestTtl,
} from '../contract/store.ts';
import { busy, headMoved, notFound, notSucceeded, taken } from './errors.ts';
import { type HolderFact, isHolder } from './holder.ts';

/** A snapshot as the rules see it. `Key` is the store's own handle of its row. */
export interface SnapshotFact<Key> {
  /** The store's handle of the snapshot. */
  readonly key: Key;
  /** `false`: it is only the session's latest saved state. */
  readonly isListed: boolean;
  /** The listed snapshot that is its parent. */
  readonly parent: Key | null;
}

/** A snapshot that a run can start from. */
export interface StartFact<Key> extends SnapshotFact<Key> {
  /** Its place in the list; -1: not listed. */
  readonly index: number;
  /** The id of the snapshot. */
  readonly snapshotId: string;
  /** The index of its turn. */
  readonly turnIndex: number;
  /** How its turn ended. */
  readonly finishReason: FinishReason | undefined;
  /** The usage of the session up to it. */
  readonly totals: Totals | undefined;
  /** Whether a turn that succeeded continues from an interrupted one already. */
  readonly isAnswered: boolean;
}

/** Where a session stands. */
interface SessionFact<Key, Run> {
  /** The head, if there is one. */
  readonly head: StartFact<Key> | null;
  /** The index of the next snapshot. */
  readonly nextIndex: number;
  /** Its open run. */
  readonly run: HolderFact<Run> | null;
}

/** The facts that a claim depends on. */
export interface ClaimFacts<Key, Run> {
  /** The time, in milliseconds. */
  readonly now: number;
  /** The facts of each of the claim's keys, in their order. */
  readonly requests: readonly (RequestFact<Run> | null)[];
  /** A snapshot or a run has the reserved id. */
  readonly isTaken: boolean;
  /** `null`: there is no such session yet. */
  readonly session: SessionFact<Key, Run> | null;
  /** The snapshot that `from` names, or a run that has not written one. */
  readonly from: {
    readonly sessionId: string;
    readonly status: Exclude<SnapshotStatus, 'expired'>;
    readonly snapshot: StartFact<Key> | null;
  } | null;
}

/** The writes of a claim: a run, and the session when it is new. */
export interface ClaimDecision<Key, Run> {
  /** The snapshot to start from; `null` for the first turn of a root. */
  readonly start: StartFact<Key> | null;
  /** The head of the session. */
  readonly head: StartFact<Key> | null;
  /** The index of the next turn. */
  readonly turnIndex: number;
  /** Whether the session is created. */
  readonly isNewSession: boolean;
  /** Expired attached runs that give way: the one in the session, and those that held the keys. */
  readonly displaced: readonly Run[];
  /** The session's next index once the displaced run has left its snapshot behind. */
  readonly nextIndex: number;
}

/** Decides how a run is accepted, or refuses it: see {@link RunSupport.claim}. */
export function decideClaim<Key, Run>(
  facts: ClaimFacts<Key, Run>,
  request: ClaimRequest,
): ClaimDecision<Key, Run> {
  const { session, now } = facts;
  const displaced = new Set<Run>();
  for (let at = 0; at < facts.requests.length; at++) {
    const known = facts.requests[at] ?? null;
    const mark = request.requests?.[at];
    if (known === null || mark === undefined) continue;
    if (isKept(known, now)) throw requestTaken(known, mark.digest);
    if (known.run !== null) displaced.add(known.run.key);
  }
  if (facts.isTaken) throw taken(request.runId);
  const start = startOf(facts, request);
  checkHolder(session?.run ?? null, request.sessionId, now);
  const head = session?.head ?? null;
  checkHead(head?.snapshotId ?? null, request.expectHead);
  if (session !== null && session.run !== null) displaced.add(session.run.key);
  return {
    start,
    head,
    turnIndex: start === null ? 0 : start.turnIndex + 1,
    isNewSession: session === null,
    displaced: [...displaced],
    nextIndex: session === null ? 0 : session.nextIndex + (session.run === null ? 0 : 1),
  };
}

function startOf<Key, Run>(
  { session, from }: ClaimFacts<Key, Run>,
  request: ClaimRequest,
): StartFact<Key> | null {
  if (request.from === null) return null;
  if (request.from === 'head') return session?.head ?? null;
  const { snapshotId } = request.from;
  if (from?.sessionId !== request.sessionId) throw notFound('snapshot', snapshotId);
  if (from.status !== 'succeeded') throw notSucceeded(snapshotId, from.status);
  return from.snapshot;
}

/** Refuses a change to a session that a run holds. */
export function checkHolder<Run>(
  run: HolderFact<Run> | null,
  sessionId: string,
  now: number,
): void {
  if (run !== null && isHolder(run, now)) throw busy(sessionId, run.runId);
}

/** Refuses a caller that expects another head; `null`: none yet. */
export function checkHead(headId: string | null, expected: string | null | undefined): void {
  if (expected !== undefined && expected !== headId) throw headMoved(headId);
}

type Writable<Type> = { -readonly [Key in keyof Type]: Type[Key] };

/** The answer to the holder of a run about its claim. */
export function toClaim<Key>(
  { runId, attempt, sessionId }: RunRef & { readonly sessionId: string },
  known: {
    readonly start: StartFact<Key> | null;
    /** The snapshot that the run's next one continues from. @default `start` */
    readonly base?: Key | null;
    readonly head: Pick<StartFact<Key>, 'key' | 'isListed' | 'snapshotId'> | null;
    readonly isNewSession: boolean;
    readonly nextIndex: number;
    readonly failedTotals?: Totals | undefined;
    readonly steered?: boolean;
    readonly isDetached?: boolean;
  },
): Claim {
  const { start, head, failedTotals } = known;
  const base = known.base === undefined ? (start?.key ?? null) : known.base;
  // An unlisted head gets an index before the first snapshot that does not continue from it.
  const listsHead = head !== null && !head.isListed && head.key !== base;
  const claim: Writable<Claim> = {
    runId,
    attempt,
    sessionId,
    fresh: known.isNewSession,
    nextIndex: known.nextIndex + (listsHead ? 1 : 0),
  };
  if (start !== null) claim.parent = toParent(start, attempt);
  if (head !== null) claim.headId = head.snapshotId;
  if (failedTotals !== undefined) claim.failedTotals = failedTotals;
  if (known.steered === true) claim.steered = true;
  if (known.isDetached === true) claim.detached = true;
  return claim;
}

function toParent<Key>(start: StartFact<Key>, attempt: number): ParentRef {
  const { snapshotId, turnIndex, finishReason, totals } = start;
  // A run that was taken over was accepted while the interrupt was open; its own snapshots are no second answer.
  const answered = start.isAnswered && attempt === 1;
  const parent: Writable<ParentRef> = { snapshotId, turnIndex };
  if (finishReason !== undefined) parent.finishReason = finishReason;
  if (finishReason === 'interrupted') parent.answered = answered;
  if (!start.isListed) parent.listed = false;
  if (totals !== undefined) parent.totals = totals;
  return parent;
}

/** The facts of an idempotency key. */
export interface RequestFact<Run> {
  /** The id of the run. */
  readonly runId: string;
  /** `null`: the session was removed together with its run, which was refused. */
  readonly sessionId: string | null;
  /** The digest of the input. */
  readonly digest: string;
  /** When it was claimed or, once there is a receipt, when the run ended. */
  readonly at: number;
  /** Whether the output is stored. */
  readonly hasReceipt: boolean;
  /** The status of the run's snapshot, if it has been written. */
  readonly status: Exclude<SnapshotStatus, 'expired'> | null;
  /** The run, while it is open. */
  readonly run: HolderFact<Run> | null;
}

/** Whether a request has a result, or a run that may still have one, so that its key does not pass to a new claim. */
function isKept<Run>(request: RequestFact<Run>, now: number): boolean {
  const { sessionId, run, at, hasReceipt, status } = request;
  if (run !== null) return isHolder(run, now);
  if (sessionId === null) return false;
  if (at <= now - requestTtl) return false;
  return hasReceipt || (status !== null && status !== 'pending');
}

function requestTaken<Run>(
  { runId, sessionId, digest }: RequestFact<Run>,
  given: string,
): WaymarkError {
  if (digest === given) {
    return new WaymarkError(
      'ALREADY_EXISTS',
      `This request was accepted before, as run "${runId}".`,
      { details: { request: { runId, sessionId } } },
    );
  }
  return invalid(
    `This request id was used before with another input, for run "${runId}". Use a new id for a new request.`,
    { details: { snapshotId: runId } },
  );
}
