import { toJson } from '../../core/json/json.ts';
import {
  type RequestMark,
  type RequestOutcome,
  type RequestRecord,
  requestTtl,
} from '../contract/store.ts';
import { requestTaken } from '../rules/request-taken.ts';
import { isExpired, type RequestRow, type RunRow, type Tables } from './tables.ts';

/**
 * Refuses a claim under keys that belong to another run. Returns the runs that give way to it: attached ones that have
 * expired.
 */
export function checkRequests(
  tables: Tables,
  marks: readonly RequestMark[] = [],
): readonly RunRow[] {
  if (marks.length === 0) return [];
  forgetOldRequests(tables);
  const dead: RunRow[] = [];
  for (const { key, digest } of marks) {
    const request = tables.requests.get(key);
    if (request === undefined) continue;
    const run = tables.runs.get(request.runId);
    if (isTaken(tables, request, run))
      throw requestTaken({ ...request, sessionId: request.session.id }, digest);
    if (run !== undefined) dead.push(run);
  }
  return dead;
}

/** Notes that keys belong to a run. */
export function addRequests(
  tables: Tables,
  { id: runId, session }: RunRow,
  marks: readonly RequestMark[] = [],
): void {
  for (const { key, digest } of marks) {
    put(tables, key, { session, runId, digest, at: tables.clock.now() });
  }
}

/** Keeps what a run came to under its keys. */
export function endRequests(
  tables: Tables,
  { id: runId, session }: RunRow,
  outcome: RequestOutcome | undefined,
): void {
  if (outcome === undefined) return;
  const receipt = toJson(outcome.receipt, 'The receipt of a request');
  for (const key of outcome.keys) {
    const known = tables.requests.get(key);
    if (known !== undefined && known.runId !== runId) continue;
    put(tables, key, {
      session,
      runId,
      digest: known?.digest ?? '',
      at: tables.clock.now(),
      receipt,
    });
  }
}

/** Puts another receipt in place of the one that a run ended with. */
export function replaceReceipt(tables: Tables, runId: string, outcome: RequestOutcome): void {
  const receipt = toJson(outcome.receipt, 'The receipt of a request');
  for (const key of outcome.keys) {
    const known = tables.requests.get(key);
    if (known?.runId === runId) put(tables, key, { ...known, at: tables.clock.now(), receipt });
  }
}

/** What is known of a request. */
export function readRequest(tables: Tables, key: string): RequestRecord | undefined {
  forgetOldRequests(tables);
  const found = tables.requests.get(key);
  if (found === undefined) return undefined;
  const { runId, session, receipt } = found;
  return { runId, sessionId: session.id, ...(receipt === undefined ? {} : { receipt }) };
}

/** Whether a request has a result, or a run that may still come to one. */
function isTaken(tables: Tables, { runId, receipt }: RequestRow, run: RunRow | undefined): boolean {
  if (run !== undefined) {
    return !(run.request.mode === 'attached' && isExpired(run, tables.clock.now()));
  }
  const row = tables.snapshots.get(runId);
  return receipt !== undefined || (row !== undefined && row.status !== 'pending');
}

// Moved to the end, so that the oldest stay at the beginning.
function put(tables: Tables, key: string, row: RequestRow): void {
  tables.requests.delete(key);
  tables.requests.set(key, row);
}

function forgetOldRequests({ requests, runs, clock }: Tables): void {
  const before = clock.now() - requestTtl;
  for (const [key, { at, runId }] of requests) {
    if (at > before) return;
    if (!runs.has(runId)) requests.delete(key);
  }
}
