import type { Scope } from '../../contract/store.ts';
import { uuidText } from '../values/bytes.ts';

/** Whose session something belongs to, as the columns of the session say it. */
export interface Home {
  /** `''` without an owner. */
  readonly owner: string;
  readonly agent: string;
  readonly sessionId: string;
}

/** The columns of a row that say whose session it belongs to. */
export interface HomeRow {
  readonly owner: string;
  readonly agent: string;
  readonly session_id: string;
}

export function homeOf(row: HomeRow): Home {
  return { owner: row.owner, agent: row.agent, sessionId: row.session_id };
}

export function homeIn({ owner = '', agent }: Scope, sessionId: string): Home {
  return { owner, agent, sessionId };
}

/**
 * Places bind an encrypted value to the row and the column it was written to: copied anywhere else, it does not decrypt.
 * Messages and documents are shared by snapshots and forks, so they are bound to their table here and to their snapshots by
 * the hash of the state, which is bound to its snapshot. No name contains NUL, so a place has one reading.
 */
export const messagePlace = 'messages.body';
export const documentPlace = 'blobs.body';
export const bytesPlace = 'blobs.bytes';
export const metaPlace = 'meta.sealed';

export function sessionPlace(column: 'title' | 'metadata', home: Home): string {
  return `sessions.${column}\0${keyOf(home)}`;
}

export function snapshotPlace(
  column: 'error' | 'label' | 'state_hash',
  home: Home,
  id: Uint8Array | string | null,
): string {
  // A checkpoint has no id: its hash is bound to its session.
  return `snapshots.${column}\0${keyOf(home)}\0${idText(id)}`;
}

export function requestPlace(home: Home, runId: Uint8Array | string): string {
  return `runs.request\0${keyOf(home)}\0${idText(runId)}`;
}

/** A fork has the effects of its source, so they are bound to the key of their call. */
export function effectPlace({ owner, agent }: Pick<Home, 'owner' | 'agent'>, key: string): string {
  return `effects.body\0${owner}\0${agent}\0${key}`;
}

/** The key is a hash of owner, agent and request id. */
export function receiptPlace(key: string, runId: Uint8Array | string): string {
  return `requests.receipt\0${key}\0${idText(runId)}`;
}

export function journalPlace(
  home: Home,
  runId: Uint8Array | string,
  row: { readonly attempt: number; readonly seq: number; readonly last: number },
): string {
  return `journal.body\0${keyOf(home)}\0${idText(runId)}\0${row.attempt}\0${row.seq}\0${row.last}`;
}

export function memoryPlace(scope: string, entry: string, version: string): string {
  return `memory.body\0${scope}\0${entry}\0${version}`;
}

/** The part of a turn's memory that a checkpoint keeps, by the id of its run. */
export function pendingPlace(runId: Uint8Array | string): string {
  return `memory_notes.pending\0${idText(runId)}`;
}

function keyOf({ owner, agent, sessionId }: Home): string {
  return `${owner}\0${agent}\0${sessionId}`;
}

function idText(id: Uint8Array | string | null): string {
  if (id === null) return '';
  return typeof id === 'string' ? id : uuidText(id);
}
