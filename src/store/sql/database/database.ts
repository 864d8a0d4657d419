import type { Transaction } from '../../contract/store.ts';
import type { Dialect } from './dialect.ts';
import type { Plan } from './query.ts';

/** How a plan is to be run. */
export interface WriteOptions {
  /**
   * Whether it must outlive a power cut. What can be lost without harm (a claim of an attached turn, a heartbeat, an event)
   * need not wait for the disk. @default true
   */
  readonly durable?: boolean;
  /** The plan is one statement, which is a transaction by itself. @default false */
  readonly single?: boolean;
  /** Statements of others in the same transaction, after the plan. Only where the database is `transactional`. */
  readonly within?: (transaction: Transaction) => Promise<void>;
}

/** An open database, the same to the store whichever it is. */
export interface Database {
  readonly dialect: Dialect;
  /** Whether it takes `within`. @default false */
  readonly transactional?: boolean;
  /** The same database, through a connection that turns do not use. @default none: there are no connections to take from them */
  readonly forMaintenance?: Database;
  /** Opens it, makes or upgrades its tables; safe to call again. Everything below calls it. */
  open(): Promise<void>;
  /** A random name that the database got when it was made. */
  readonly id: string;
  /** Runs a plan that only reads. */
  read<Result>(plan: () => Plan<Result>): Promise<Result>;
  /**
   * Runs a long plan that only reads, on one state of the database. Everything else that waits for the thread runs after each of its
   * statements.
   */
  readInSteps<Result>(plan: () => Plan<Result>): Promise<Result>;
  /** Runs a plan in one transaction: all of it or nothing. It may be begun again when another writer was in the way. */
  write<Result>(plan: () => Plan<Result>, options?: WriteOptions): Promise<Result>;
  /** Faults of the database itself, beyond what its content shows. A signal stops waiting for the answer. */
  check?(signal?: AbortSignal): Promise<readonly string[]>;
  /** Whether `check` has a thread to itself, so that it can run while something else does. @default false */
  readonly checksAside?: boolean;
  /** After erasing: sees to it that no old copy of the text is left, where the database leaves one. */
  scrub(): Promise<void>;
  /**
   * Tells listeners that something about these runs may have changed. Never waits. Changes that other processes are unlikely to wait
   * for reaches this process only; others find it out when they look next.
   */
  tell(hints: readonly Hint[], reach?: 'process' | 'everywhere'): void;
  /** Calls back soon after a hint with this key, from any process. Returns the way to stop listening. */
  listen(hint: Hint, listener: () => void): () => void;
  close(): Promise<void>;
}

/** A possible change: `run` for a run or snapshot, `events` for the events of a run. */
export interface Hint {
  readonly kind: 'run' | 'events';
  readonly id: string;
}

/** A hint as a key of listeners. */
export function hintKey({ kind, id }: Hint): string {
  return `${kind} ${id}`;
}

/** Options that both SQL stores have. */
export interface QueryOptions {
  /** Called with the name of each executed statement, for metrics and logs. */
  readonly onQuery?: (name: string) => void;
}
