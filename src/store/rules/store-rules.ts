import type { JsonObject } from '../../core/json/json.ts';
import type { Message } from '../../protocol/message.ts';
import {
  type Claim,
  type ClaimRequest,
  type CommitWrite,
  type EventCursor,
  handedOverHint,
  type RetentionPolicy,
  requestTtl,
  type SessionFilter,
  type SuspectLimit,
  savedPendingTtl,
  waitingTtl,
} from '../contract/store.ts';
import {
  type ClaimDecision,
  type ClaimFacts,
  decideClaim,
  refuseHolder,
  toClaim,
} from './decide-claim.ts';
import { type CommitDecision, type CommitFacts, decideCommit } from './decide-commit.ts';
import { decideLabel, decideRestore, refuseFork } from './decide-timeline.ts';
import { accepted } from './decision.ts';
import { notFound, notHeld, sessionExists, storeFault, taken } from './errors.ts';
import { isAfter } from './event-body.ts';
import { decideAbort, type HolderFact, isExpired, isHolder } from './holder.ts';
import { type RetainedSession, type Selection, selectVictims } from './retention.ts';
import { checkSaved } from './saved-snapshot.ts';
import { matchesQuery, passesFilter, searchTextOf } from './session-filter.ts';
import { checkMetadata } from './size-limits.ts';
import { anySuspects, pickRuns } from './suspects.ts';

/**
 * The decisions that every store makes, as pure functions: a store reads the facts, passes them to a rule, and writes what the rule
 * decides. A rule that refuses a call throws its error. `Key` and `Run` are the store's own handles of snapshots and runs.
 */
export const storeRules = {
  /** Decides whether a run is accepted, where it starts, and which expired runs it replaces: see {@link RunSupport.claim}. */
  claim<Key, Run>(facts: ClaimFacts<Key, Run>, request: ClaimRequest): ClaimDecision<Key, Run> {
    return accepted(decideClaim(facts, request));
  },

  /** The answer to the holder of a run about its claim, also after a takeover. */
  toClaim<Key>(...known: Parameters<typeof toClaim<Key>>): Claim {
    return toClaim(...known);
  },

  /** Decides where a snapshot is listed, whether the head moves and whether the run ends: see {@link RunSupport.commit}. */
  commit<Key>(facts: CommitFacts<Key>, write: CommitWrite): CommitDecision<Key> {
    return accepted(decideCommit(facts, write));
  },

  /** Refuses a snapshot that cannot be saved: see {@link SnapshotStore.saveSnapshot}. */
  save(...given: Parameters<typeof checkSaved>): void {
    checkSaved(...given);
  },

  /** Decides whether the head moves to a snapshot: see {@link TimelineSupport.restore}. */
  restore<Key, Run>(
    ...given: Parameters<typeof decideRestore<Key, Run>>
  ): Exclude<ReturnType<typeof decideRestore<Key, Run>>, Error> {
    return accepted(decideRestore(...given));
  },

  /** Refuses a fork that cannot be made: see {@link TimelineSupport.fork}. */
  fork<Key>(...given: Parameters<typeof refuseFork<Key>>): void {
    const refusal = refuseFork(...given);
    if (refusal !== undefined) throw refusal;
  },

  /** Decides on a label: see {@link TimelineSupport.label}. A snapshot that gets one is listed. */
  label<Key>(...given: Parameters<typeof decideLabel<Key>>): { readonly lists: boolean } {
    return accepted(decideLabel(...given));
  },

  /** Decides whether an abort ends an open run or signals it to stop: see {@link AbortSupport.abortSnapshot}. */
  abort(...[run, now]: Parameters<typeof decideAbort>): ReturnType<typeof decideAbort> {
    return decideAbort(run, now);
  },

  /** Refuses a change to a session that a run holds. */
  free<Run>(run: HolderFact<Run> | null, sessionId: string, now: number): void {
    const refusal = refuseHolder(run, sessionId, now);
    if (refusal !== undefined) throw refusal;
  },

  /** Whether a run holds its session. An expired attached run holds nothing: no other worker can continue it. */
  isHolder(...[run, now]: Parameters<typeof isHolder>): boolean {
    return isHolder(run, now);
  },

  /** Whether a run has sent no heartbeat for as long as its ttl. */
  isExpired(...[run, now]: Parameters<typeof isExpired>): boolean {
    return isExpired(run, now);
  },

  /** Picks the expired runs that a worker takes over, the least suspicious first: see {@link RunSupport.takeOver}. */
  takeOver<Run extends { readonly crashes: number }>(
    runs: readonly Run[],
    suspects: SuspectLimit = anySuspects,
  ): readonly Run[] {
    return pickRuns(runs, suspects);
  },

  /** Selects the snapshots of a session that a retention policy deletes: see {@link MaintenanceSupport.prune}. */
  prune<Id extends string | number>(
    session: RetainedSession<Id>,
    policy: RetentionPolicy,
    now: number,
  ): Selection<Id> {
    return selectVictims(session, policy, now);
  },

  /** Whether a session is in a list with this filter and query: see {@link TimelineSupport.listSessions}. */
  matches(
    filter: SessionFilter,
    {
      messages,
      ...session
    }: Parameters<typeof passesFilter>[1] &
      Omit<Parameters<typeof matchesQuery>[1], 'text'> & {
        /** The messages of its head; read only if a query needs them. */
        readonly messages: () => readonly Message[];
      },
  ): boolean {
    if (!passesFilter(filter, session)) return false;
    return matchesQuery(filter.query ?? '', { ...session, text: () => searchTextOf(messages()) });
  },

  /** A session's metadata, checked and copied before they are written: see {@link TimelineSupport.updateSession}. */
  metadata(given: JsonObject): JsonObject {
    return checkMetadata(given);
  },

  /** Whether an event comes after a place: see {@link EventSupport.read}. */
  isAfter(event: EventCursor, place: EventCursor | undefined): boolean {
    return isAfter(event, place);
  },
};

/** Errors that all stores share. */
export const storeErrors = {
  /** `NOT_FOUND`: an id that is unknown in its scope. */
  notFound,
  /** `ABORTED`: a write under a stale attempt (fencing token), because another worker has taken over the run. */
  notHeld,
  /** `ALREADY_EXISTS`: the id of a new snapshot. */
  snapshotExists: taken,
  /** `ALREADY_EXISTS`: the id of a new session. */
  sessionExists,
  /** An error whose message names paths, hosts or what a driver said. Remote clients get a general message for the status. */
  fault: storeFault,
};

/** Times in milliseconds, and a listener key, that all stores share. */
export const storeConstants = {
  /** How long a request id is remembered after the end of its run. */
  requestTtl,
  /** The time after its last write at which a pending snapshot of `saveSnapshot` reads `expired`. */
  savedPendingTtl,
  /** The `ttl` of a run that waits for a worker. */
  waitingTtl,
  /** The id under which `abort.onChange` tells that a run has been handed over as it was detached. */
  handedOverHint,
} as const;
