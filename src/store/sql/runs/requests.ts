import type { Json } from '../../../core/json/json.ts';
import {
  type RequestMark,
  type RequestOutcome,
  type RequestRecord,
  requestTtl,
} from '../../contract/store.ts';
import type { RequestFact } from '../../rules/decide-claim.ts';
import type { Cipher } from '../content/cipher.ts';
import { openJson } from '../content/open-json.ts';
import { receiptPlace } from '../content/places.ts';
import {
  expect,
  first,
  guard,
  type Plan,
  readUnderLock,
  run,
  type SqlValue,
  statement,
} from '../database/query.ts';
import { fromHex, hexOf, uuidText } from '../values/bytes.ts';
import { fromStatus } from '../values/codes.ts';
import { type HolderRow, holderColumns, holderFact, isHeld } from './open-run.ts';

interface RequestRow extends HolderRow {
  readonly run: Uint8Array;
  readonly session: number;
  /** `null`: it went with its run, which was refused. */
  readonly session_id: string | null;
  readonly digest: Uint8Array;
  readonly at: number;
  readonly has_receipt: number;
  readonly status: number | null;
}

const selectRequest = readUnderLock<RequestRow>(
  'request_claimed',
  (d) => `
    SELECT ${d.now} AS now, q.run, q.session, z.id AS session_id, q.digest, q.at, s.status,
      CASE WHEN q.receipt IS NULL THEN 0 ELSE 1 END AS has_receipt, ${holderColumns}
    FROM @requests q LEFT JOIN @sessions z ON z.row_id = q.session
    LEFT JOIN @runs r ON r.id = q.run LEFT JOIN @snapshots s ON s.id = q.run
    WHERE q.key = $1 ${d.lock('q')}`,
);
const selectHolder = readUnderLock<HolderRow>(
  'request_holder',
  (d) => `
    SELECT ${d.now} AS now, ${holderColumns}
    FROM @sessions z LEFT JOIN @runs r ON r.session = z.row_id AND r.id = $2
    WHERE z.row_id = $1 ${d.lock('z')}`,
);
const deleteRequest = statement('request_free', 'DELETE FROM @requests WHERE key = $1');
const updateRequest = statement(
  'request_end',
  (d) => `UPDATE @requests SET receipt = $3, at = ${d.now} WHERE key = $1 AND run = $2`,
);
const selectRecord = statement<{ run: Uint8Array; session_id: string; receipt: SqlValue }>(
  'request_read',
  (d) => `
    SELECT q.run, z.id AS session_id, q.receipt FROM @requests q JOIN @sessions z ON z.row_id = q.session
    WHERE q.key = $1 AND (q.at > ${d.now} - ${requestTtl}
      OR EXISTS (SELECT 1 FROM @runs r WHERE r.id = q.run))`,
);
// As a separate query: Postgres uses no index for a function that gives another time for each row.
const isOld = (now: string): string => `q.at <= (SELECT ${now} - ${requestTtl})
  AND NOT EXISTS (SELECT 1 FROM @runs r WHERE r.id = q.run)`;
const selectOld = statement<{ found: number }>(
  'request_old',
  (d) => `SELECT 1 AS found FROM @requests q WHERE ${isOld(d.now)} LIMIT 1`,
);
const deleteOld = statement(
  'request_forget',
  (d) => `DELETE FROM @requests AS q WHERE ${isOld(d.now)}`,
);

/** Facts about the keys of a claim, in their order, and the time of reading them. */
export function* requestFacts(marks: readonly RequestMark[] = []): Plan<{
  readonly facts: readonly (RequestFact<number> | null)[];
  readonly now: number;
}> {
  const facts: (RequestFact<number> | null)[] = [];
  let now = 0;
  for (const { key } of marks) {
    const row = yield* first(selectRequest, fromHex(key));
    if (row !== undefined) now = row.now;
    facts.push(row === undefined ? null : yield* requestFact(row));
  }
  return { facts, now };
}

function* requestFact(row: RequestRow): Plan<RequestFact<number>> {
  // An expired run may send a heartbeat meanwhile; under the lock of its session it cannot.
  const isDead = row.run_session !== null && !isHeld(row);
  const holder = isDead ? yield* first(selectHolder, row.session, row.run) : row;
  return {
    runId: uuidText(row.run),
    sessionId: row.session_id,
    digest: hexOf(row.digest),
    at: row.at,
    hasReceipt: row.has_receipt === 1,
    status: row.status === null ? null : fromStatus(row.status),
    run: holder === undefined ? null : holderFact(holder),
  };
}

const unused = guard(
  'request_unused',
  'SELECT 1 AS found WHERE NOT EXISTS (SELECT 1 FROM @requests q WHERE q.key = $1)',
);
const insertForSession = statement(
  'request_claim',
  (d) => `
    INSERT INTO @requests(key, run, session, digest, at)
    SELECT $1, $2, z.row_id, $3, ${d.now} FROM @sessions z WHERE z.owner = $4 AND z.agent = $5 AND z.id = $6`,
);

/** The statements that claim keys of which nothing is known yet. */
export const keyStatements = [unused, insertForSession];

/** Lets a write go ahead only if no run has the keys. One that another transaction adds in the same moment ends it with a conflict. */
export function* expectUnused(marks: readonly RequestMark[] = []): Plan<void> {
  for (const { key } of marks) yield* expect(unused, fromHex(key));
}

/** Notes that keys belong to a run of a session. */
export function* claimKeys(
  runId: Uint8Array,
  session: readonly [owner: string, agent: string, id: string],
  marks: readonly RequestMark[] = [],
): Plan<void> {
  for (const { key, digest } of marks) {
    yield* run(insertForSession, fromHex(key), runId, fromHex(digest), ...session);
  }
}

/** Takes keys from the runs that they belonged to. */
export function* freeRequests(
  marks: readonly RequestMark[] = [],
  facts: readonly (RequestFact<number> | null)[],
): Plan<void> {
  for (const [at, { key }] of marks.entries()) {
    if (facts[at] !== null) yield* run(deleteRequest, fromHex(key));
  }
}

export const requestStatements = [updateRequest];

/** Stores the outcome of a run under its keys. */
export function* endRequests(
  runId: Uint8Array,
  outcome: RequestOutcome | undefined,
  cipher: Cipher,
): Plan<void> {
  if (outcome === undefined) return;
  for (const key of outcome.keys) {
    const text = JSON.stringify(outcome.receipt);
    const receipt = cipher.encrypt(text, receiptPlace(key, runId));
    yield* run(updateRequest, fromHex(key), runId, receipt);
  }
}

/** The record of a request: see {@link RunSupport.getRequest}. */
export function* readRequest(key: string, cipher: Cipher): Plan<RequestRecord | undefined> {
  const row = yield* first(selectRecord, fromHex(key));
  if (row === undefined) return undefined;
  const known = { runId: uuidText(row.run), sessionId: row.session_id };
  if (row.receipt === null) return known;
  return { ...known, receipt: openJson(row.receipt, receiptPlace(key, row.run), cipher) as Json };
}

/** Forgets the requests whose time is over. Gives whether there were any. */
export function* forgetRequests(): Plan<boolean> {
  if ((yield* first(selectOld)) === undefined) return false;
  yield* run(deleteOld);
  return true;
}
