import { checkScope, checkSessionId, checkSnapshotId } from '../../../protocol/ids.ts';
import type { Claim, ClaimRequest, RunRequest, Scope } from '../../contract/store.ts';
import { type ClaimDecision, decideClaim, toClaim } from '../../rules/decide-claim.ts';
import { accepted } from '../../rules/decision.ts';
import { taken } from '../../rules/errors.ts';
import type { Cipher } from '../content/cipher.ts';
import { homeIn, requestPlace } from '../content/places.ts';
import { insertion, one, type Plan, run, type SqlValue, statement } from '../database/query.ts';
import type { StateContext } from '../history/state-rows.ts';
import { uuidBytes } from '../values/bytes.ts';
import { toMode } from '../values/codes.ts';
import { scopeKey } from '../values/scope.ts';
import { isUsed, readClaim } from './claim-facts.ts';
import { expireRun } from './expire-run.ts';
import { hasLeftInbox } from './left-inbox.ts';
import { addRequests, freeRequests } from './requests.ts';
import { totalsOfFailed } from './start-row.ts';

const insertSession = insertion(
  'claim_new_session',
  (d) => `
    INSERT INTO @sessions(owner, agent, id, started_by_agent, started_by_session, started_by_snapshot,
      created_at, updated_at)
    VALUES($1, $2, $3, $4, $5, $6, ${d.now}, ${d.now})`,
);
const insertRun = statement(
  'claim_new_run',
  (d) => `
    INSERT INTO @runs(id, session, attempt, mode, worker, request, turn, start, base, ttl, heartbeat, created_at)
    VALUES($1, $2, 1, $3, $4, $5, $6, $7, $7, $8, ${d.now}, ${d.now})`,
);

/** A run that was accepted, what was decided, and where its session stands. */
interface Claimed {
  readonly claim: Claim;
  readonly decision: ClaimDecision<number, number>;
  readonly place: { readonly session: number; readonly branchEnd: number | null };
}

/** Accepts a run: see {@link RunSupport.claim}. */
export function* claim(scope: Scope, request: ClaimRequest, context: StateContext): Plan<Claimed> {
  const { runId, sessionId, requests } = request;
  const id = uuidBytes(runId);
  const { facts, session, branchEnd } = yield* readClaim(scope, request, id);
  const decision = accepted(decideClaim(facts, request));
  for (const displaced of decision.displaced) yield* expireRun(displaced, context);
  yield* freeRequests(requests, facts.requests);
  const row = session ?? (yield* createSession(scope, sessionId, request));
  const start = decision.start?.key ?? null;
  const place = requestPlace(homeIn(scope, sessionId), runId);
  const sealed = toRequest(request, place, context.cipher);
  const { mode, worker, ttl } = request;
  const values = [id, row, toMode(mode), worker, sealed, decision.turnIndex, start, ttl];
  yield* run(insertRun, ...values);
  yield* addRequests(id, row, requests);
  const failedTotals =
    request.limited === true && !decision.isNewSession
      ? yield* totalsOfFailed(decision.start, { ...decision, scope, sessionId })
      : undefined;
  const steered = request.keepInbox === true && (yield* hasLeftInbox(scope, sessionId));
  return {
    claim: toClaim({ runId, attempt: 1, sessionId }, { ...decision, failedTotals, steered }),
    decision,
    place: { session: row, branchEnd },
  };
}

/** Refuses a claim that no store can keep. */
export function checkClaim(scope: Scope, request: ClaimRequest): void {
  checkScope(scope);
  checkSessionId(request.sessionId);
  checkSnapshotId(request.runId);
}

/** Refuses an id that a snapshot or a run has. */
export function* checkUnused(snapshotId: string): Plan<void> {
  if (yield* isUsed(uuidBytes(snapshotId))) throw taken(snapshotId);
}

/** A new empty session. */
export function* createSession(
  scope: Scope,
  sessionId: string,
  { startedBy }: Pick<ClaimRequest, 'startedBy'> = {},
): Plan<number> {
  const values = [...scopeKey(scope), sessionId, ...startedByValues(startedBy)];
  return (yield* one(insertSession, ...values)).row_id;
}

/** The columns of who started a session. */
export function startedByValues(
  startedBy: ClaimRequest['startedBy'],
): readonly [string | null, string | null, string | null] {
  if (startedBy === undefined) return [null, null, null];
  return [startedBy.agent, startedBy.sessionId, startedBy.snapshotId ?? null];
}

/** The stored part of a request, encrypted. */
export function toRequest(
  { init, inputs, context, version, keepInbox }: RunRequest,
  place: string,
  cipher: Cipher,
): SqlValue {
  return cipher.encrypt(JSON.stringify({ init, inputs, context, version, keepInbox }), place);
}
