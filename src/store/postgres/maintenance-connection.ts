import type { Client, Pool, PoolClient, QueryConfig, QueryResult } from 'pg';
import { ignore } from './access.ts';
import { isLost } from './errors.ts';

/** Milliseconds after which it is closed when nothing uses it. */
const idleMs = 10_000;

/** Milliseconds that a step waits for turns at most. */
const longestWait = 5;

/** As the package `pg` makes it; its types do not say that. */
type Made = Client & { ref(): void; unref(): void };

/** What a pool holds besides what its types say. */
export type PoolParts = Pool & {
  readonly Client: new (config: object) => Made;
  readonly options: { readonly onConnect?: (client: Client) => unknown };
};

/**
 * A connection outside of a pool, made as the pool makes its own. Those who want it wait for each other. It does not keep the process from
 * ending.
 */
export class MaintenanceConnection {
  readonly #pool: PoolParts;
  readonly #closed: () => Error;
  #client: Made | undefined;
  /** Settled when all who came before are done. */
  #turn: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #timer: NodeJS.Timeout | undefined;
  #released: Promise<void> | undefined;
  #isClosed = false;

  constructor(pool: Pool, closed: () => Error) {
    this.#pool = pool as PoolParts;
    this.#closed = closed;
  }

  /** The connection, until it is released. */
  async connect(): Promise<PoolClient> {
    const before = this.#turn;
    let end = (): void => {};
    this.#turn = new Promise<void>((resolve) => {
      end = resolve;
    });
    this.#waiting++;
    await before;
    clearTimeout(this.#timer);
    try {
      if (this.#isClosed) throw this.#closed();
      this.#client ??= await this.#open();
    } catch (error) {
      this.#waiting--;
      end();
      throw error;
    }
    const client = this.#client;
    client.ref();
    const release = (broken?: Error | boolean): void => {
      client.unref();
      if (broken !== undefined && broken !== false) this.#drop(client);
      this.#waiting--;
      if (this.#waiting === 0) {
        this.#timer = setTimeout(() => this.#drop(client), idleMs);
        this.#timer.unref();
      }
      end();
    };
    return Object.assign(client, { release });
  }

  /** Runs one statement. */
  async query(config: QueryConfig): Promise<QueryResult> {
    const client = await this.connect();
    let isBroken = false;
    try {
      return await client.query(config);
    } catch (error) {
      isBroken = isLost(error);
      throw error;
    } finally {
      client.release(isBroken);
    }
  }

  /** Resolves when no turn uses the pool, or after a few milliseconds. */
  async giveWay(): Promise<void> {
    const pool = this.#pool;
    const until = performance.now() + longestWait;
    while (pool.totalCount > pool.idleCount && performance.now() < until) {
      this.#released ??= this.#nextRelease();
      await this.#released;
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
    // What users do with each connection of their pool.
    for (const listener of this.#pool.listeners('connect')) listener(client);
    await options.onConnect?.(client);
    return client;
  }

  /** Resolves when a connection goes back to the pool, or after a few milliseconds. */
  #nextRelease(): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        this.#pool.off('release', end);
        this.#released = undefined;
        resolve();
      };
      const timer = setTimeout(end, longestWait);
      this.#pool.on('release', end);
    });
  }

  #drop(client: Made): void {
    this.#forget(client);
    client.end().catch(ignore);
  }

  #forget(client: Made): void {
    if (this.#client === client) this.#client = undefined;
  }
}
