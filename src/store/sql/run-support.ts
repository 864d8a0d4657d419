import { isSnapshotId } from '../../protocol/ids.ts';
import {
  type Claim,
  type ClaimRequest,
  type CommitWrite,
  handedOverHint,
  type RunRef,
  type RunSupport,
  type Scope,
  type StateBase,
  type StateWrite,
} from '../contract/store.ts';
import { homeIn } from './content/places.ts';
import type { Hint } from './database/driver.ts';
import { stateRows } from './history/state-rows.ts';
import { attachPartial, checkpoint } from './runs/checkpoint.ts';
import { claim } from './runs/claim.ts';
import { claimIdle } from './runs/claim-idle.ts';
import { AmbiguousCommits, alreadyCommitted, type CommitResult, commit } from './runs/commit.ts';
import { dropDead, listDead } from './runs/dead-runs.ts';
import { readInbox, readLeftInbox, steer } from './runs/inbox.ts';
import { endRequests, readRequest } from './runs/requests.ts';
import { getRun, listRuns } from './runs/run-record.ts';
import { detach, handOver, heartbeat, limitHeartbeats, release } from './runs/run-writes.ts';
import { getStep, saveStep } from './runs/steps.ts';
import { readTaken, type Taken, type TakeOver, takeRuns } from './runs/take-over.ts';
import { loadState } from './snapshots/locate.ts';
import type { SqlContext } from './sql-context.ts';
import { uuidBytes } from './values/bytes.ts';

export function runSupport(context: SqlContext): RunSupport {
  const { db, state, cipher, gcScheduler, uploading, send } = context;
  // The checkpoints of runs that were taken over here: what grows from one is written as a difference to it.
  const taken = new Map<string, StateBase>();

  const onCheckpoint = <Write extends StateWrite>({ runId }: RunRef, write: Write): Write => {
    const from = taken.get(runId);
    if (from === undefined || !from.state.history.isPrefixOf(write.state.history)) return write;
    const { customPatch: _, ...rest } = write;
    return { ...rest, base: from } as Write;
  };
  // Attached runs of this process: their callers are here.
  const attached = new Set<string>();
  const forget = (runId: string): void => {
    taken.delete(runId);
    attached.delete(runId);
    state.homes.delete(runId);
    state.known.forget(runId);
  };
  const remember = (runId: string, scope: Scope, sessionId: string): void => {
    if (cipher.keyId !== undefined) state.homes.set(runId, homeIn(scope, sessionId));
  };
  const tell = (runId: string, other: string = runId): void => {
    const hints: Hint[] = [
      { kind: 'run', id: runId },
      { kind: 'events', id: runId },
    ];
    if (other !== runId) hints.push({ kind: 'run', id: other });
    db.tell(hints, attached.has(runId) ? 'process' : 'everywhere');
  };

  const claimedNow = async (scope: Scope, request: ClaimRequest): Promise<Claim> => {
    const durable = request.mode !== 'attached';
    const accept = function* () {
      const claimed = yield* claim(scope, request, state);
      if (request.mode !== 'detached') return claimed;
      yield* detach(claimed.claim, request, undefined, undefined, state);
      return { ...claimed, claim: { ...claimed.claim, detached: true as const } };
    };
    const { claim: made, decision, place } = await db.write(accept, { durable });
    if (made.detached !== true) state.known.claimed(scope, request, decision, place);
    return made;
  };

  const ambiguousCommits = new AmbiguousCommits();
  const committedOnce = async (ref: RunRef, write: CommitWrite): Promise<CommitResult> => {
    try {
      return await commit(db, ref, write, state);
    } catch (error) {
      if (!ambiguousCommits.hasDoubt(ref, write, error)) throw error;
      const committed = await db.read(() => alreadyCommitted(write, state));
      if (committed === undefined) throw error;
      return { committed, discards: true };
    }
  };

  const takeAll = async (request: TakeOver): Promise<readonly Taken[]> => {
    const take = function* () {
      if (!db.dialect.hasClock) yield* limitHeartbeats();
      return yield* takeRuns(request);
    };
    // Writes under the new attempt wait for the disk, and make this last as well.
    const sessions = await db.write(take, { durable: false });
    return sessions.length === 0 ? [] : await db.read(() => readTaken(sessions, state));
  };

  return {
    async claim(scope, request) {
      // In one process, reading first costs nothing.
      const idle =
        request.mode === 'detached' || db.isLocal === true
          ? undefined
          : await claimIdle(db, scope, request, state);
      const claimed = idle ?? (await claimedNow(scope, request));
      if (request.mode === 'attached') attached.add(claimed.runId);
      remember(claimed.runId, scope, claimed.sessionId);
      return claimed;
    },
    load: (scope, lookup) => db.read(() => loadState(scope, lookup, state)),
    async heartbeat(ref) {
      const signal = await db.write(() => heartbeat(ref), { durable: false, guarded: 'heartbeat' });
      if (signal === 'lost') {
        forget(ref.runId);
        uploading.delete(ref.runId);
      }
      return signal;
    },
    transactional: db.transactional === true,
    async detach(ref, request, away, events) {
      const within = away?.within;
      const isPlain = events === undefined;
      const snapshot =
        (away && isPlain && (await send?.({ ref, request, away }))) ||
        (await db.write(() => detach(ref, request, away, events, state), {
          ...(within && { within }),
        }));
      // From here on others wait for it too.
      attached.delete(ref.runId);
      state.known.forget(ref.runId);
      tell(ref.runId, away === undefined ? ref.runId : handedOverHint);
      if (!isPlain) db.tell([{ kind: 'events', id: ref.runId }]);
      return snapshot;
    },
    async checkpoint(ref, write) {
      const grown = onCheckpoint(ref, write);
      const rows = stateRows(grown, state);
      const base = await db.write(() => checkpoint(ref, grown, rows, state));
      state.known.forget(ref.runId);
      taken.delete(ref.runId);
      if (write.events !== undefined) db.tell([{ kind: 'events', id: ref.runId }]);
      return base;
    },
    async commit(ref, write) {
      const grown = onCheckpoint(ref, write);
      const { committed, discards } = await committedOnce(ref, grown);
      tell(ref.runId, write.snapshotId);
      if (write.end) forget(ref.runId);
      const hasUploaded = write.end && uploading.delete(ref.runId);
      if (discards || hasUploaded) gcScheduler.later();
      return committed;
    },
    async release(ref, events, requests) {
      await db.write(() => release(ref, events, requests, state));
      tell(ref.runId);
      forget(ref.runId);
      uploading.delete(ref.runId);
      gcScheduler.later();
    },
    async replaceReceipt(runId, requests) {
      if (!isSnapshotId(runId)) return;
      await db.write(() => endRequests(uuidBytes(runId), requests, cipher));
    },
    getRequest: (key) => db.read(() => readRequest(key, cipher)),
    async handOver(ref) {
      await db.write(() => handOver(ref));
      tell(ref.runId);
    },
    async attachPartial(ref, write) {
      if (!isSnapshotId(ref.runId)) return;
      const rows = stateRows(write, state);
      const isAttached = await db.write(() => attachPartial(ref, write, rows, state));
      if (!isAttached) return;
      tell(ref.runId);
      gcScheduler.later();
    },
    getStep: (ref, key) => db.read(() => getStep(ref, key, state)),
    async saveStep(ref, key, value) {
      await db.write(() => saveStep(ref, key, value, state));
      state.known.forget(ref.runId);
    },
    async steer(scope, runId, message) {
      const isThere = await db.write(() => steer(scope, runId, message, state));
      if (isThere) db.tell([{ kind: 'run', id: runId }]);
      return isThere;
    },
    readInbox: (ref) => db.read(() => readInbox(ref, state)),
    readLeftInbox: (scope, sessionId) => db.read(() => readLeftInbox(scope, sessionId, cipher)),
    async takeOver(request) {
      await gcScheduler.forget();
      const runs = await takeAll(request);
      return runs.map(({ from, ...run }) => {
        if (from !== undefined) taken.set(run.run.runId, from);
        remember(run.run.runId, run.run.scope, run.run.sessionId);
        tell(run.run.runId);
        return run;
      });
    },
    getRun: (scope, runId) => db.read(() => getRun(scope, runId, cipher)),
    listRuns: (scope) => db.read(() => listRuns(scope, cipher)),
    listDeadRuns: (scope) => db.read(() => listDead(scope, cipher)),
    dropDeadRun: (scope, runId) => db.write(() => dropDead(scope, runId)),
  };
}
