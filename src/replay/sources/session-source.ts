import type { SessionExport } from '../../session/export-session.ts';
import type { SessionFilter, Store } from '../../store/contract/store.ts';

/** Sessions of a store. A session must pass all that is given. */
export interface StoredSessions extends SessionFilter {
  /** @default the app's store */
  readonly store?: Store;
  /** @default all agents of the app */
  readonly agent?: string;
  /** The owner of the sessions. */
  readonly owner?: string;
  /** These sessions only. */
  readonly ids?: readonly string[];
  /** At most this many, newest first. @default all */
  readonly limit?: number;
}

/** Where a replay gets its sessions from. A text is an export file, a folder of export files, or the id of a session. */
export type SessionSource =
  | string
  | readonly string[]
  | StoredSessions
  | SessionExport
  | readonly SessionExport[];

/** A session before it is read. */
export interface FoundSession {
  /** The id of the session, or the place in a file. */
  readonly name: string;
  /** Reads the whole session; `undefined` when it no longer exists. */
  read(): Promise<SessionExport | undefined>;
}
