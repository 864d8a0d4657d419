import {
  type RequestMark,
  type RequestOutcome,
  type RequestRecord,
  storeConstants,
  toJson,
} from 'waymark/store';
import { type RunRow, sessionOf, type Transaction } from './tables.ts';

export function addRequests(
  tx: Transaction,
  run: RunRow,
  marks: readonly RequestMark[] = [],
): void {
  const sessionId = sessionOf(tx, run).id;
  for (const { key, digest } of marks) {
    const row = { runId: run.id, session: run.session, sessionId, digest, at: tx.now };
    tx.data.requests[key] = row;
  }
}

/** A request whose row was deleted meanwhile: no other input has this digest. */
const deleted = { digest: 'unknown' };

/** Keeps the result of a run under its keys; keys that belong to another run by now stay as they are. */
export function endRequests(
  tx: Transaction,
  run: Pick<RunRow, 'id' | 'session'>,
  outcome: RequestOutcome | undefined,
): void {
  if (outcome === undefined) return;
  const receipt = toJson(outcome.receipt, 'The receipt of a request');
  for (const key of outcome.keys) {
    const known = tx.data.requests[key];
    if (known !== undefined && known.runId !== run.id) continue;
    const sessionId = sessionOf(tx, run).id;
    const { digest } = known ?? deleted;
    const row = { runId: run.id, session: run.session, sessionId, digest, at: tx.now, receipt };
    tx.data.requests[key] = row;
  }
}

export function replaceReceipt(tx: Transaction, runId: string, outcome: RequestOutcome): void {
  const receipt = toJson(outcome.receipt, 'The receipt of a request');
  for (const key of outcome.keys) {
    const known = tx.data.requests[key];
    if (known?.runId === runId) tx.data.requests[key] = { ...known, at: tx.now, receipt };
  }
}

export function readRequest(tx: Transaction, key: string): RequestRecord | undefined {
  forgetOldRequests(tx);
  const row = tx.data.requests[key];
  if (row === undefined) return undefined;
  const { runId, sessionId, receipt } = row;
  return { runId, sessionId, ...(receipt !== undefined && { receipt }) };
}

export function forgetOldRequests(tx: Transaction): void {
  const { requests, runs } = tx.data;
  for (const [key, { at, runId }] of Object.entries(requests)) {
    if (at <= tx.now - storeConstants.requestTtl && !(runId in runs)) delete requests[key];
  }
}
