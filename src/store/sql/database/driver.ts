import type { Transaction } from '../../contract/store.ts';
import type { Dialect } from './dialect.ts';
import type { Plan } from './query.ts';

/**
 * A SQL database, as the SQL stores use it. The stores have the rules, the statements, the tables and what a commit writes; a driver has the
 * connections: it opens the database, runs plans in transactions, maps errors to `WaymarkError`s, and tells listeners of changes.
 *
 * A driver runs a plan by sending the query that it yields and passing the rows back, until it is done. Plans are pure: a driver may run
 * one again when another writer was in the way.
 */
export interface Driver {
  /** The SQL that the database speaks: the expressions in which databases differ. */
  readonly dialect: Dialect;
  /** The absolute paths of its files, where it is one on this machine: they are no part of a workspace that they are in. */
  readonly paths?: readonly string[];
  /** Whether statements take no round trip. A claim then reads before it writes. @default false */
  readonly isLocal?: boolean;
  /** Whether `write` accepts `within`. @default false */
  readonly transactional?: boolean;
  /** The same database through a connection that turns do not use. @default this driver */
  readonly forMaintenance?: Driver;
  /** Opens the database, and creates or upgrades its tables. A store calls it before all other members, and again if it failed. */
  open(): Promise<void>;
  /** Runs a plan that only reads. Its queries may see different states of the database. */
  read<Result>(plan: () => Plan<Result>): Promise<Result>;
  /**
   * Runs a plan in one transaction: all of it or nothing. Repeats it after a conflict with another transaction. Rejects with the error that
   * the plan throws, which undoes it. If the connection breaks, so that the outcome is unknown, it rejects with `UNAVAILABLE`
   * and does not repeat it: the store looks the snapshot up.
   */
  write<Result>(plan: () => Plan<Result>, options?: WriteOptions): Promise<Result>;
  /** Faults of the database itself, beyond those that its content shows. The signal ends the wait for them. @default none */
  check?(signal?: AbortSignal): Promise<readonly string[]>;
  /** Whether `check` runs in another thread, during other work. @default false */
  readonly checksAside?: boolean;
  /** Removes deleted content from free pages and logs, where the database leaves it there. @default nothing to remove */
  scrub?(): Promise<void>;
  /**
   * Tells listeners that these runs may have changed. Never waits and never fails. With `'process'`, only listeners of this process need
   * to hear of it; others find it out when they look next.
   */
  tell(hints: readonly Hint[], reach?: 'process' | 'everywhere'): void;
  /** Calls back soon after a hint with this key, from any process. Returns a function that stops listening. */
  listen(hint: Hint, listener: () => void): () => void;
  /** Closes the connections that belong to the driver. */
  close(): Promise<void>;
}

/** Options of a write. */
export interface WriteOptions {
  /**
   * Whether it must outlive a power cut. Writes that can be lost without harm (the claim of an attached turn, a heartbeat, an event)
   * need not wait for the disk. @default true
   */
  readonly durable?: boolean;
  /**
   * Names a guarded write: a plan whose queries depend on no answers, except for the `row_id` of a row that it inserts. A driver
   * may run it like any other plan, or collect its queries, send them at once and then pass the answers. The plan throws if a
   * guard gives no row; then nothing must be written. @default not guarded
   */
  readonly guarded?: string;
  /** Hints for listeners everywhere, given once it is written. */
  readonly hints?: readonly Hint[];
  /** Statements of the caller in the same transaction, after the plan. Only if the driver is `transactional`. */
  readonly within?: (transaction: Transaction) => Promise<void>;
}

/** A possible change: `run` for a run or snapshot, `events` for the events of a run. */
export interface Hint {
  /** What may have changed. */
  readonly kind: 'run' | 'events';
  /** The id of the run, which is also the id of its snapshot. */
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
