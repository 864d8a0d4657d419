import { Mutex } from '../../../core/async/promises.ts';
import { letOthersRun } from '../../../core/platform.ts';
import { after, type Clock } from '../../../core/time.ts';
import type { Cipher } from '../content/cipher.ts';
import { areUploadsReleased } from '../content/uploads.ts';
import type { Driver } from '../database/driver.ts';
import { forgetEvents } from '../runs/events.ts';
import { forgetRequests } from '../runs/requests.ts';
import { releaseSome, sweepSome } from './gc-sweep.ts';

// Long enough that a burst of turns is followed by one collection.
const restBefore = 200;

// Request ids are kept for a day: a minute more does no harm.
const requestsEvery = 60_000;

interface Options {
  readonly db: Driver;
  readonly clock: Clock;
  readonly eventsTtl: number;
  readonly cipher: Cipher;
}

/** Collects garbage soon after turns may have left some, in small steps between turns. */
export class GcScheduler {
  readonly #options: Options;
  #stop: (() => void) | undefined;
  readonly #rounds = new Mutex();
  #forgetAt = 0;
  #forgetRequestsAt = 0;
  #isClosed = false;

  constructor(options: Options) {
    this.#options = options;
  }

  /** Collects garbage after a while. A failure is left to the next round: the queue stays. */
  later(): void {
    if (this.#stop !== undefined || this.#isClosed) return;
    this.#stop = after(this.#options.clock, restBefore, () => {
      this.#endTimer();
      this.now().catch(() => {});
    });
  }

  /** Collects garbage until the queue is empty. Maintenance does it through its own connection. */
  now(db: Driver = this.#options.db): Promise<void> {
    return this.#rounds.run(async () => {
      do await this.#sweep(db);
      while (await this.#release(db));
    });
  }

  /** Forgets the events of runs that ended long enough ago; looked at now and then. */
  async forget(): Promise<void> {
    const { db, clock, eventsTtl } = this.#options;
    const now = clock.now();
    if (now < this.#forgetAt) return;
    this.#forgetAt = now + Math.min(eventsTtl / 4, 5000);
    await db.write(() => forgetEvents(eventsTtl), { durable: false });
    if (now >= this.#forgetRequestsAt) await this.forgetRequests();
  }

  /** Forgets the request ids whose time is over. Gives whether there were any. Maintenance does it through its own connection. */
  async forgetRequests(db: Driver = this.#options.db): Promise<boolean> {
    this.#forgetRequestsAt = this.#options.clock.now() + requestsEvery;
    return await db.write(() => forgetRequests(), { durable: false });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#endTimer();
    await this.#rounds.after(() => {});
  }

  async #sweep(db: Driver): Promise<void> {
    const { cipher } = this.#options;
    let without: 'documents' | undefined;
    for (;;) {
      const which = without;
      const swept = await db.write(() => sweepSome(cipher, db.dialect, which), { durable: false });
      if (swept === 'nothing') return;
      // The others have the documents collected when they are done.
      if (swept === 'waits') without = 'documents';
      await letOthersRun();
    }
  }

  /** Releases files of runs that are over. Gives whether there were any. */
  async #release(db: Driver): Promise<boolean> {
    if (!(await db.read(() => areUploadsReleased()))) return false;
    await db.write(() => releaseSome(), { durable: false });
    await letOthersRun();
    return true;
  }

  #endTimer(): void {
    this.#stop?.();
    this.#stop = undefined;
  }
}
