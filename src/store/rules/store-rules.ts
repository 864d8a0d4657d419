import type { Message } from '../../protocol/message.ts';
import {
  handedOverHint,
  requestTtl,
  type SessionFilter,
  savedPendingTtl,
  waitingTtl,
} from '../contract/store.ts';
import { checkHolder, decideClaim, toClaim } from './decide-claim.ts';
import { decideCommit } from './decide-commit.ts';
import { checkFork, decideLabel, decideRestore } from './decide-timeline.ts';
import { notFound, notHeld, sessionExists, storeFault, taken } from './errors.ts';
import { isAfter } from './event-body.ts';
import { decideAbort, isExpired, isHolder } from './holder.ts';
import { selectVictims } from './retention.ts';
import { checkSaved } from './saved-snapshot.ts';
import { matchesQuery, passesFilter, searchTextOf } from './session-filter.ts';
import { checkMetadata } from './size-limits.ts';
import { pickRuns } from './suspects.ts';

/**
 * The decisions that every store makes, as pure functions: a store reads the facts, passes them to a rule, and writes what the rule
 * decides. A rule that refuses a call throws its error. `Key` and `Run` are the store's own handles of snapshots and runs.
 */
export const storeRules = {
  /** Decides whether a run is accepted, where it starts, and which expired runs it replaces: see {@link RunSupport.claim}. */
  claim: decideClaim,

  /** The answer to the holder of a run about its claim, also after a takeover. */
  toClaim,

  /** Decides where a snapshot is listed, whether the head moves and whether the run ends: see {@link RunSupport.commit}. */
  commit: decideCommit,

  /** Refuses a snapshot that cannot be saved: see {@link SnapshotStore.saveSnapshot}. */
  save: checkSaved,

  /** Decides whether the head moves to a snapshot: see {@link TimelineSupport.restore}. */
  restore: decideRestore,

  /** Refuses a fork that cannot be made: see {@link TimelineSupport.fork}. */
  fork: checkFork,

  /** Decides on a label: see {@link TimelineSupport.label}. A snapshot that gets one is listed. */
  label: decideLabel,

  /** Decides whether an abort ends an open run or signals it to stop: see {@link AbortSupport.abortSnapshot}. */
  abort: decideAbort,

  /** Refuses a change to a session that a run holds. */
  free: checkHolder,

  /** Whether a run holds its session. An expired attached run holds nothing: no other worker can continue it. */
  isHolder,

  /** Whether a run has sent no heartbeat for as long as its ttl. */
  isExpired,

  /** Picks the expired runs that a worker takes over, the least suspicious first: see {@link RunSupport.takeOver}. */
  takeOver: pickRuns,

  /** Selects the snapshots of a session that a retention policy deletes: see {@link MaintenanceSupport.prune}. */
  prune: selectVictims,

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
  metadata: checkMetadata,

  /** Whether an event comes after a place: see {@link EventSupport.read}. */
  isAfter,
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
