import { invalid, type WaymarkError } from '../core/error.ts';

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
  throw invalid(
    `Expected ${what} as a string, got ${kindOf(id)}. Check that the id is set before the call.`,
  );
}

export function scopeOf(
  { name }: { readonly name: string },
  owner: string | undefined,
): { readonly agent: string; readonly owner?: string } {
  if (owner === undefined) return { agent: name };
  checkId(owner, 'an owner');
  return { agent: name, owner };
}

/** A lookup without absent ids. Throws `INVALID_ARGUMENT` when it has none, or one that is not a string. */
export function checkLookup(
  lookup: Lookup | { readonly snapshotId?: unknown; readonly sessionId?: unknown },
): Lookup {
  const { snapshotId, sessionId }: { snapshotId?: unknown; sessionId?: unknown } = lookup ?? {};
  if (snapshotId === undefined && sessionId === undefined) {
    throw invalid('Expected { snapshotId } or { sessionId } to look up, got neither.');
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

/** The id of an event: `attempt.sequence`, each of 1 to 9 digits. */
export const eventIdPattern = '^\\d{1,9}\\.\\d{1,9}$';

interface EventPlace {
  readonly attempt: number;
  readonly seq: number;
}

const eventId = new RegExp(eventIdPattern);

/** The attempt and the sequence number that an event id names; `INVALID_ARGUMENT` for anything else. */
export function parseEventId(id: unknown): EventPlace {
  if (typeof id !== 'string' || !eventId.test(id)) {
    const shown = typeof id === 'string' ? JSON.stringify(id.slice(0, 40)) : typeof id;
    throw invalid(
      `${shown} is not the id of an event. Expected attempt.sequence, such as "1.42": the id of the last event that was read.`,
    );
  }
  const [attempt, seq] = id.split('.').map(Number);
  return { attempt: attempt ?? 0, seq: seq ?? 0 };
}

/** How request ids begin that a client makes by itself. */
export const autoPrefix = 'auto-';

/** The longest session id or owner, in UTF-16 code units; short enough for an index of any database. */
export const maxIdLength = 256;

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Whether a string can be the id of a snapshot: a UUID in lower case. Other strings are unknown to every store. */
export function isSnapshotId(id: string): boolean {
  return uuid.test(id);
}

/** Whether a string can be a session id, an owner or an agent: not empty, not too long, text that every store can keep. */
export function isName(name: string): boolean {
  return (
    name.length > 0 && name.length <= maxIdLength && name.isWellFormed() && !name.includes('\0')
  );
}

export function checkSnapshotId(id: string): void {
  if (isSnapshotId(id)) return;
  throw invalid(`${quote(id)} is not a snapshot id. Expected a UUID in lower case.`);
}

export function checkSessionId(id: string): void {
  checkName(id, 'session id');
}

export function checkScope(scope: { readonly agent: string; readonly owner?: string }): void {
  checkName(scope.agent, 'agent name');
  if (scope.owner !== undefined) checkName(scope.owner, 'owner');
}

function checkName(name: string, what: string): void {
  if (!isName(name)) throw notAName(name, what);
}

export function notAName(name: string, what: string): WaymarkError {
  return invalid(
    `${quote(name)} is not a valid ${what}. Expected 1 to ${maxIdLength} characters of well-formed text without NUL.`,
  );
}

// It may be refused for its length.
function quote(id: string): string {
  return JSON.stringify(id.length > 40 ? `${id.slice(0, 40)}…` : id);
}

export function toEventId({ attempt, seq }: EventPlace): string {
  return `${attempt}.${seq}`;
}
