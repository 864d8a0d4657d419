import type { Client, Pool, PoolClient, QueryConfig, QueryResult } from 'pg';
import { ignore } from './access.ts';
import { isLost } from './errors.ts';

/** Milliseconds after which it is closed when nothing uses it. */
const idleMs = 10_000;

/** Milliseconds that a step waits for turns at most. */
const longestWait = 5;
/** So many steps wait in vain at most: an app may keep a connection of its pool for good. */
const mostInVain = 50;

// As it is when this is loaded: tests may replace it later.
const { setTimeout: startTimer } = globalThis;
const aMillisecond = (): Promise<void> => new Promise((resolve) => void startTimer(resolve, 1));

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
  /** How often it waited in vain for others, one time after the other. */
  #inVain = 0;
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

  /** Resolves when no turn uses the pool, or after a few milliseconds. If the pool is always in use, steps no longer wait. */
  async giveWay(): Promise<void> {
    for (let left = longestWait; this.#isPoolUsed(); left--) {
      if (left === 0) this.#inVain++;
      if (left === 0 || this.#inVain >= mostInVain) return;
      await aMillisecond();
    }
    this.#inVain = 0;
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

  #isPoolUsed(): boolean {
    return this.#pool.totalCount > this.#pool.idleCount;
  }

  #drop(client: Made): void {
    this.#forget(client);
    client.end().catch(ignore);
  }

  #forget(client: Made): void {
    if (this.#client === client) this.#client = undefined;
  }
}
