/** The id under which `abort.onChange` tells that some run has been handed over as it was detached. */
export const handedOverHint = 'handed-over';

/** A transaction of a store's, for what others keep in the same database. */
export interface Transaction {
  /** Runs one statement inside the transaction. */
  query(text: string, values: readonly unknown[]): Promise<{ readonly rows: unknown[] }>;
}

/** How long a run that waits for a worker reads as `pending`: 24 days. */
export const waitingTtl = 2_147_483_647;

/** The worker that a detached run is handed over to. Such a run does not expire; it waits for a `takeOver` with its id. */
export interface QueueHandoff {
  /** The name of the worker that it waits under. */
  readonly worker: string;
  /**
   * Writes to the same database in the same transaction; may be called again. Runs that are detached at the same time may
   * share a transaction, and are then called together with the same one. Only where `runs.transactional`.
   */
  readonly within?: (transaction: Transaction) => Promise<void>;
}
