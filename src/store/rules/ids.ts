import { WaymarkError } from '../../core/error.ts';
import type { Scope } from '../contract/store.ts';

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

/** Refuses a snapshot id that cannot be one, before it is written. */
export function checkSnapshotId(id: string): void {
  if (!isSnapshotId(id)) throw notASnapshotId(id);
}

/** The refusal of a snapshot id that cannot be one. */
export function notASnapshotId(id: string): WaymarkError {
  return new WaymarkError(
    'INVALID_ARGUMENT',
    `${quote(id)} is not a snapshot id. Expected a UUID in lower case.`,
  );
}

/** Refuses a session id that cannot be one, before it is written. */
export function checkSessionId(id: string): void {
  checkName(id, 'session id');
}

/** Refuses a scope that no store can keep. */
export function checkScope(scope: Scope): void {
  checkName(scope.agent, 'agent name');
  if (scope.owner !== undefined) checkName(scope.owner, 'owner');
}

function checkName(name: string, what: string): void {
  if (!isName(name)) throw notAName(name, what);
}

/** The refusal of a session id, an owner or an agent name that cannot be one. */
export function notAName(name: string, what: string): WaymarkError {
  return new WaymarkError(
    'INVALID_ARGUMENT',
    `${quote(name)} is not a valid ${what}. Expected 1 to ${maxIdLength} characters of well-formed text without NUL.`,
  );
}

// What is wrong with it may be its length.
function quote(id: string): string {
  return JSON.stringify(id.length > 40 ? `${id.slice(0, 40)}…` : id);
}
