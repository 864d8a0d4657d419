import { defined, toJson } from '../../core/json/json.ts';
import {
  type RequestMark,
  type RequestOutcome,
  type RequestRecord,
  requestTtl,
} from '../contract/store.ts';
import { findRequest, type RequestRow, type RunRow, type Tables } from './tables.ts';

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

/** Stores the outcome of a run under its keys. */
export function endRequests(
  tables: Tables,
  { id: runId, session }: RunRow,
  outcome: RequestOutcome | undefined,
): void {
  if (outcome === undefined) return;
  const receipt = toJson(outcome.receipt, 'The receipt of a request');
  for (const key of outcome.keys) {
    const known = findRequest(tables, key);
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

/** Replaces the receipt that a run ended with. */
export function replaceReceipt(tables: Tables, runId: string, outcome: RequestOutcome): void {
  const receipt = toJson(outcome.receipt, 'The receipt of a request');
  for (const key of outcome.keys) {
    const known = findRequest(tables, key);
    if (known?.runId === runId) put(tables, key, { ...known, at: tables.clock.now(), receipt });
  }
}

export function readRequest(tables: Tables, key: string): RequestRecord | undefined {
  forgetOldRequests(tables);
  const found = findRequest(tables, key);
  if (found === undefined) return undefined;
  const { runId, session, receipt } = found;
  return defined({ runId, sessionId: session.id, receipt });
}

// Moved to the end, so that the oldest stay at the beginning.
function put(tables: Tables, key: string, row: RequestRow): void {
  tables.requests.delete(key);
  tables.requests.set(key, row);
}

export function forgetOldRequests({ requests, runs, clock }: Tables): void {
  const before = clock.now() - requestTtl;
  for (const [key, { at, runId }] of requests) {
    if (at > before) return;
    if (!runs.has(runId)) requests.delete(key);
  }
}
