import { WaymarkError } from '../core/error.ts';

/**
 * One snapshot by its id, or the one at the head of a session. With both ids it is the snapshot, which is unknown unless it
 * belongs to that session.
 */
export type Lookup =
  | { readonly snapshotId: string; readonly sessionId?: string | undefined }
  | { readonly sessionId: string };

/** Throws `INVALID_ARGUMENT` unless an id is a string. Stores, agents and clients all check ids here. */
export function checkId(id: unknown, what: string): asserts id is string {
  if (typeof id === 'string') return;
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    `Expected ${what} as a string, got ${kindOf(id)}. Check that the id is set before the call.`,
  );
}

/** A lookup without absent ids. Throws `INVALID_ARGUMENT` when it has none, or one that is not a string. */
export function checkLookup(
  lookup: Lookup | { readonly snapshotId?: unknown; readonly sessionId?: unknown },
): Lookup {
  const { snapshotId, sessionId }: { snapshotId?: unknown; sessionId?: unknown } = lookup ?? {};
  if (snapshotId === undefined && sessionId === undefined) {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      'Expected { snapshotId } or { sessionId } to look up, got neither.',
    );
  }
  if (sessionId !== undefined) checkId(sessionId, 'a session id');
  if (snapshotId !== undefined) checkId(snapshotId, 'a snapshot id');
  if (snapshotId === undefined) return { sessionId: sessionId ?? '' };
  return sessionId === undefined ? { snapshotId } : { snapshotId, sessionId };
}

/** Whether a snapshot of this session is what a lookup asks for. */
export function fitsLookup(lookup: Lookup, sessionId: string): boolean {
  return lookup.sessionId === undefined || lookup.sessionId === sessionId;
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'an array' : typeof value;
}
