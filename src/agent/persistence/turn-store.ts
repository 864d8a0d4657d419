import { hasStatus, type Status, WaymarkError } from '../../core/error.ts';
import { type Clock, timeoutSignal } from '../../core/time.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import {
  fromPlainState,
  isStateHash,
  type SessionState,
  toPlainState,
} from '../../session/session-state.ts';
import type {
  Claim,
  ClaimRequest,
  CommitWrite,
  LoadedState,
  Lookup,
  ParentRef,
  RunSupport,
  Scope,
  SnapshotStore,
  StateBase,
} from '../../store/contract/store.ts';
import { headMoved } from '../../store/rules/errors.ts';
import { writtenSnapshot } from '../../store/rules/saved-snapshot.ts';
import type { AgentStore } from '../contract/spec.ts';
import type { TurnBase, TurnStore } from '../contract/turn-store.ts';
import type { AgentHost, CachedState } from './host.ts';
import { retryWhileUnavailable, unknownOutcome, wasNotSent } from './store-errors.ts';

/** How an agent reads and writes its sessions in this store. */
export function turnStoreOf(store: AgentStore, options: TurnStoreOptions): TurnStore {
  return store.runs !== undefined
    ? claimTurnStore(store.runs, options)
    : plainTurnStore(store, options);
}

/** For an agent whose clients hold the state: saves nothing. */
export const clientTurnStore: TurnStore = {
  load: () => Promise.resolve(undefined),
  begin: (_scope, { sessionId }) => Promise.resolve({ sessionId, nextIndex: 0 }),
  commit: () => Promise.reject(new TypeError('A client-managed agent saves nothing.')),
  release: () => Promise.resolve(),
};

interface TurnStoreOptions {
  readonly host: Pick<AgentHost, 'cache' | 'clock' | 'worker' | 'ttl'>;
  /** Brings a stored state up to the agent's present schema. */
  readonly upgrade: (state: SessionState) => Promise<SessionState>;
}

/** Claims first, then one transaction that saves: two round trips a turn when the session's state is cached. */
function claimTurnStore(runs: RunSupport, options: TurnStoreOptions): TurnStore {
  const { host, upgrade } = options;
  const { cache, clock, ttl } = host;
  const read = async (
    scope: Scope,
    { snapshotId, listed }: ParentRef,
    loaded: StateBase | undefined,
  ): Promise<CachedState | undefined> => {
    if (listed !== false && loaded?.snapshotId === snapshotId) {
      return { base: loaded, listed: loaded };
    }
    const base = await runs.load(scope, { snapshotId });
    if (base === undefined || listed !== false) return base && { base, listed: base };
    const { parentId } = base.snapshot;
    const last =
      parentId === undefined ? undefined : await runs.load(scope, { snapshotId: parentId });
    return { base, listed: last };
  };
  const stateOf = async (
    scope: Scope,
    { parent, sessionId }: Claim,
    loaded: StateBase | undefined,
  ): Promise<Pick<TurnBase, 'base' | 'state' | 'listed'>> => {
    if (parent === undefined) return {};
    const cached = cache.get(scope, sessionId);
    if (cached?.base.snapshotId === parent.snapshotId) {
      return { ...cached, state: cached.base.state };
    }
    const found = await read(scope, parent, loaded);
    return found === undefined ? {} : { ...found, state: await upgrade(found.base.state) };
  };
  return {
    load: (scope, lookup) => runs.load(scope, lookup),
    async begin(scope, given) {
      const { loaded, ...request } = given;
      let claim: Claim;
      try {
        claim = await runs.claim(scope, { ...request, ttl, worker: host.worker });
      } catch (error) {
        // It was refused, and so is certainly not written.
        if (hasStatus(error, ...refusals) || wasNotSent(error)) throw error;
        // It may have been written all the same.
        claim = await takeBackClaim(runs, scope, request, { error, clock, ttl });
      }
      const { sessionId, parent, nextIndex, failedTotals } = claim;
      const run = { runId: claim.runId, attempt: claim.attempt };
      try {
        return {
          sessionId,
          run,
          nextIndex,
          parent,
          failedTotals,
          steered: claim.steered,
          detached: claim.detached,
          ...(await stateOf(scope, claim, loaded)),
        };
      } catch (error) {
        // The session must not stay claimed because its state could not be read. A detached run ends elsewhere.
        await (claim.detached ? runs.handOver(run) : runs.release(run)).catch(() => {});
        throw error;
      }
    },
    async commit(scope, turnBase, write) {
      const { run, sessionId } = turnBase;
      if (run === undefined) throw new TypeError('A commit needs the claim of its turn.');
      const committed = await runs.commit(run, write);
      if (write.status === 'succeeded') {
        const { base } = committed;
        const before = cache.get(scope, sessionId);
        // A run that has saved a snapshot already has it in the cache.
        const last = before?.base.snapshotId === write.parentId ? before?.listed : turnBase.listed;
        cache.set(scope, sessionId, { base, listed: write.listed === false ? last : base });
      }
      return committed;
    },
    async release({ run }, events, requests) {
      if (run !== undefined) await runs.release(run, events, requests);
    },
  };
}

const refusals: readonly Status[] = [
  'ABORTED',
  'NOT_FOUND',
  'INVALID_ARGUMENT',
  'FAILED_PRECONDITION',
  'ALREADY_EXISTS',
  // A damaged or full store.
  'DATA_LOSS',
  'RESOURCE_EXHAUSTED',
];

/**
 * Takes back a claim whose answer was lost, and throws the error that it was lost with. An attached run would only be waited
 * for until it expires. Another worker would take over and run an accepted one, so its caller gets the error only once the claim is
 * certainly gone. A detached run that was written stays accepted: it is handed over, and the error names it as a known request.
 */
async function takeBackClaim(
  runs: RunSupport,
  scope: Scope,
  { runId, mode }: Pick<ClaimRequest, 'runId' | 'mode'>,
  { error, clock, ttl }: { readonly error: unknown; readonly clock: Clock; readonly ttl: number },
): Promise<never> {
  const release = (): Promise<void> => runs.release({ runId, attempt: 1 });
  if (mode === 'attached') {
    release().catch(() => {});
    throw error;
  }
  const over = timeoutSignal(clock, ttl);
  try {
    const isOpen = await retryWhileUnavailable(clock, over.signal, async () => {
      try {
        if (mode === 'detached') await handOverWritten(runs, scope, runId);
        await release();
        return false;
      } catch (cause) {
        if (!hasStatus(cause, 'ABORTED')) throw cause;
        // It was never written, or another worker has already taken it over.
        return (await runs.getRun(scope, runId)) !== undefined;
      }
    });
    if (!isOpen) throw error;
  } catch (cause) {
    const isKnown = hasStatus(cause, 'ALREADY_EXISTS');
    throw cause === error || isKnown ? cause : unknownOutcome(runId, cause);
  } finally {
    over.release();
  }
  throw unknownOutcome(runId, error);
}

/** Hands a detached run over if it was written, and throws the error of a known request. */
async function handOverWritten(runs: RunSupport, scope: Scope, runId: string): Promise<void> {
  const run = await runs.getRun(scope, runId);
  if (run?.mode !== 'detached') return;
  const { sessionId } = run;
  // Another worker may have it already.
  await runs.handOver({ runId, attempt: 1 }).catch(() => {});
  throw new WaymarkError('ALREADY_EXISTS', `The run was accepted, as "${runId}".`, {
    details: { request: { runId, sessionId } },
  });
}

/**
 * Over a store that can only read and save snapshots. Two turns at once on one session are not kept apart: the agent's
 * metadata says so.
 */
function plainTurnStore(
  store: SnapshotStore,
  { host: { clock }, upgrade }: TurnStoreOptions,
): TurnStore {
  const read = async (scope: Scope, lookup: Lookup): Promise<Snapshot | undefined> => {
    const snapshot = await store.getSnapshot(scope, lookup);
    if (snapshot === undefined) return undefined;
    checkAnswer(lookup, snapshot);
    const { event, parentId, sessionId } = snapshot;
    if ('snapshotId' in lookup || event !== 'toolIterationEnd') return snapshot;
    // Every such store makes a snapshot the head as soon as it is saved. One within a turn is there only if the turn failed.
    return await beforeTurn(scope, { parentId, sessionId });
  };
  const beforeTurn = async (
    scope: Scope,
    { parentId, sessionId }: Pick<Snapshot, 'parentId' | 'sessionId'>,
  ): Promise<Snapshot | undefined> => {
    if (parentId === undefined) return undefined;
    const parent = await read(scope, { snapshotId: parentId });
    if (parent === undefined || parent.sessionId !== sessionId) return undefined;
    return parent.event === 'toolIterationEnd' ? await beforeTurn(scope, parent) : parent;
  };
  const load = async (scope: Scope, lookup: Lookup): Promise<LoadedState | undefined> => {
    const snapshot = await read(scope, lookup);
    if (snapshot === undefined) return undefined;
    const state = fromPlainState(snapshot.state ?? {});
    if (snapshot.status === 'succeeded' && !isStateHash(state, snapshot.stateHash)) {
      throw new WaymarkError(
        'DATA_LOSS',
        `Snapshot "${snapshot.snapshotId}" does not match its hash: its state was changed in the store.`,
      );
    }
    return { snapshotId: snapshot.snapshotId, state, ref: snapshot.index, snapshot };
  };
  return {
    load,
    async begin(scope, { sessionId, from, expectHead }) {
      const isNamed = from !== 'head' && from !== null;
      const found = await load(scope, isNamed ? from : { sessionId });
      if (found === undefined && isNamed) {
        throw new WaymarkError('NOT_FOUND', `No snapshot "${from.snapshotId}" in this store.`);
      }
      if (expectHead !== undefined) {
        const head = isNamed ? await load(scope, { sessionId }) : found;
        const headId = head?.snapshotId ?? null;
        if (headId !== expectHead) throw headMoved(headId);
      }
      if (found === undefined) return { sessionId, nextIndex: 0 };
      if (from === null) return { sessionId, nextIndex: found.snapshot.index + 1 };
      const { snapshot } = found;
      const { turnIndex, finishReason } = snapshot;
      const parent = {
        snapshotId: found.snapshotId,
        turnIndex,
        ...(finishReason && { finishReason }),
      };
      return {
        sessionId: snapshot.sessionId,
        parent,
        base: found,
        listed: found,
        state: await upgrade(found.state),
        nextIndex: snapshot.index + 1,
      };
    },
    async commit(scope, turnBase, write) {
      const snapshot = snapshotOf(turnBase, write, new Date(clock.now()).toISOString());
      const saved = await store.saveSnapshot(scope, write.snapshotId, () => snapshot);
      const base = { snapshotId: write.snapshotId, state: write.state, ref: snapshot.index };
      return { base, snapshot: saved ?? snapshot };
    },
    release: () => Promise.resolve(),
  };
}

/** Refuses a snapshot that was not asked for: a mistake in a store must not show one session to another. */
function checkAnswer(lookup: Lookup, { snapshotId, sessionId }: Snapshot): void {
  const isRight =
    'sessionId' in lookup ? lookup.sessionId === sessionId : lookup.snapshotId === snapshotId;
  if (isRight) return;
  const asked =
    'sessionId' in lookup ? `session "${lookup.sessionId}"` : `snapshot "${lookup.snapshotId}"`;
  throw new WaymarkError(
    'DATA_LOSS',
    `The store was asked for ${asked} and answered with another session's snapshot. Fix its getSnapshot.`,
  );
}

function snapshotOf({ sessionId }: TurnBase, write: CommitWrite, now: string): Snapshot {
  const { base, parentId } = write;
  const index = typeof base?.ref === 'number' ? base.ref + 1 : 0;
  const times = { createdAt: now, updatedAt: now };
  return {
    ...writtenSnapshot(write, { sessionId, parentId, index, ...times, orphaned: false }),
    state: toPlainState(write.state, { sessionId }),
  };
}
