import { isWaymarkError, type Status } from '../../core/error.ts';
import type { SessionState } from '../../session/session-state.ts';
import type { Claim, ParentRef, RunSupport, Scope, StateBase } from '../../store/contract/store.ts';
import type { TurnBase, TurnRequest, TurnStore } from '../spec/turn-store.ts';
import type { AgentHost } from './host.ts';
import { wasNotSent } from './outage.ts';
import type { CachedState } from './session-cache.ts';
import { takeBackClaim } from './take-back-claim.ts';

type ClaimedState = Pick<TurnBase, 'base' | 'state' | 'listed'>;

export interface TurnStoreOptions {
  readonly host: Pick<AgentHost, 'cache' | 'clock' | 'worker' | 'ttl'>;
  /** Brings a stored state up to the agent's present schema. */
  readonly upgrade: (state: SessionState) => Promise<SessionState>;
}

/** Claims first, then one transaction that saves: two round trips a turn when the session's state is cached. */
export function claimTurnStore(runs: RunSupport, options: TurnStoreOptions): TurnStore {
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
  const knownStateOf = (scope: Scope, { parent, sessionId }: Claim): ClaimedState | undefined => {
    if (parent === undefined) return {};
    const cached = cache.get(scope, sessionId);
    if (cached?.base.snapshotId !== parent.snapshotId) return undefined;
    const { base, listed } = cached;
    return { base, state: base.state, ...(listed && { listed }) };
  };
  const stateOf = async (
    scope: Scope,
    parent: ParentRef,
    loaded: StateBase | undefined,
  ): Promise<ClaimedState> => {
    const found = await read(scope, parent, loaded);
    if (found === undefined) return {};
    const { base, listed } = found;
    return { base, state: await upgrade(base.state), ...(listed && { listed }) };
  };
  return {
    load: (scope, lookup) => runs.load(scope, lookup),
    async begin(scope, given) {
      const { loaded } = given;
      const request = withoutLoaded(given);
      let claim: Claim;
      try {
        claim = await runs.claim(scope, { ...request, ttl, worker: host.worker });
      } catch (error) {
        if (isRefusal(error) || wasNotSent(error)) throw error;
        // It may have been written all the same.
        claim = await takeBackClaim(runs, scope, request, { error, clock, ttl });
      }
      const { sessionId, parent, nextIndex, failedTotals } = claim;
      const run = { runId: claim.runId, attempt: claim.attempt };
      try {
        let state = knownStateOf(scope, claim);
        if (parent !== undefined) state ??= await stateOf(scope, parent, loaded);
        return {
          sessionId,
          run,
          nextIndex,
          ...(parent && { parent }),
          ...(failedTotals && { failedTotals }),
          ...(claim.steered && { steered: true }),
          ...(claim.detached && { detached: true }),
          ...state,
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

const refusals: ReadonlySet<Status> = new Set([
  'ABORTED',
  'NOT_FOUND',
  'INVALID_ARGUMENT',
  'FAILED_PRECONDITION',
  'ALREADY_EXISTS',
  // A damaged or full store.
  'DATA_LOSS',
  'RESOURCE_EXHAUSTED',
]);

/** Whether a claim was refused, and so certainly not written. */
function isRefusal(error: unknown): boolean {
  return isWaymarkError(error) && refusals.has(error.status);
}

/** The request as a store gets it. */
function withoutLoaded(request: TurnRequest): Omit<TurnRequest, 'loaded'> {
  if (request.loaded === undefined) return request;
  const { loaded: _, ...rest } = request;
  return rest;
}
