import type { Client, Pool, PoolClient, QueryConfig, QueryResult } from 'pg';
import { storeClosed } from '../rules/errors.ts';
import { ignore } from './connection.ts';

/** Milliseconds after which it is closed when nothing uses it. */
const idleMs = 10_000;

/** A client of the package `pg`, whose types leave this out. */
type Made = Client & { ref(): void; unref(): void };

/** A pool with the parts that its types leave out. */
export type PoolParts = Pool & {
  readonly Client: new (config: object) => Made;
  readonly options: { readonly onConnect?: (client: Client) => unknown };
};

/**
 * A connection outside of a pool, made as the pool makes its own. Its users wait for each other. It does not keep the process from
 * ending.
 */
export class MaintenanceConnection {
  readonly #pool: PoolParts;
  #client: Made | undefined;
  /** Settled when all users who came before are done. */
  #turn: Promise<unknown> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(pool: Pool) {
    this.#pool = pool as PoolParts;
  }

  /** The connection, until it is released. */
  async connect(): Promise<PoolClient> {
    const before = this.#turn;
    const { promise, resolve: end } = Promise.withResolvers<void>();
    this.#turn = promise;
    await before;
    clearTimeout(this.#timer);
    try {
      if (this.#isClosed) throw storeClosed();
      this.#client ??= await this.#open();
    } catch (error) {
      end();
      throw error;
    }
    const client = this.#client;
    client.ref();
    const release = (broken?: Error | boolean): void => {
      client.unref();
      if (broken !== undefined && broken !== false) this.#drop(client);
      else this.#timer = setTimeout(() => this.#drop(client), idleMs).unref();
      end();
    };
    return Object.assign(client, { release });
  }

  async query(config: QueryConfig): Promise<QueryResult> {
    const client = await this.connect();
    try {
      return await client.query(config);
    } finally {
      client.release();
    }
  }

  /** Closes it when those who use it are done. Those who wait for it get an error. */
  async end(): Promise<void> {
    this.#isClosed = true;
    await this.#turn;
    clearTimeout(this.#timer);
    await this.#client?.end().catch(ignore);
  }

  async #open(): Promise<Made> {
    const { Client, options } = this.#pool;
    const client = new Client(options);
    client.on('error', ignore);
    client.once('end', () => this.#forget(client));
    await client.connect();
    // As for each connection of the pool.
    for (const listener of this.#pool.listeners('connect')) listener(client);
    await options.onConnect?.(client);
    return client;
  }

  #drop(client: Made): void {
    this.#forget(client);
    client.end().catch(ignore);
  }

  #forget(client: Made): void {
    if (this.#client === client) this.#client = undefined;
  }
}
