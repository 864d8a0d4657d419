import { letOthersRun } from '../../../core/platform.ts';
import type { Clock } from '../../../core/time/clock.ts';
import { after } from '../../../core/time/timers.ts';
import type { Cipher } from '../content/cipher.ts';
import { areUploadsReleased } from '../content/uploads.ts';
import type { Database } from '../database/database.ts';
import { forgetEvents } from '../runs/events.ts';
import { forgetRequests } from '../runs/requests.ts';
import { releaseSome, sweepSome } from './gc-sweep.ts';

// Long enough that a burst of turns is followed by one round of tidying.
const restBefore = 200;

// Request ids are kept for a day: a minute more does no harm.
const requestsEvery = 60_000;

interface Options {
  readonly db: Database;
  readonly clock: Clock;
  readonly eventsTtl: number;
  readonly cipher: Cipher;
}

/** Removes what nothing holds any more: soon after it may have become so, in small steps, and never in a turn's way. */
export class GcScheduler {
  readonly #options: Options;
  #stop: (() => void) | undefined;
  #running: Promise<void> | undefined;
  #forgetAt = 0;
  #forgetRequestsAt = 0;
  #isClosed = false;

  constructor(options: Options) {
    this.#options = options;
  }

  /** Tidies after a while. A failure is left to the next round: what is to be looked at stays noted. */
  later(): void {
    if (this.#stop !== undefined || this.#isClosed) return;
    this.#stop = after(this.#options.clock, restBefore, () => {
      this.#endTimer();
      this.now().catch(() => {});
    });
  }

  /** Collects garbage until the queue is empty. Maintenance does it through its own connection. */
  now(db: Database = this.#options.db): Promise<void> {
    const round = (this.#running ?? Promise.resolve()).catch(() => {}).then(() => this.#round(db));
    const tracked = round.finally(() => {
      if (this.#running === tracked) this.#running = undefined;
    });
    this.#running = tracked;
    return tracked;
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
  async forgetRequests(db: Database = this.#options.db): Promise<boolean> {
    this.#forgetRequestsAt = this.#options.clock.now() + requestsEvery;
    return await db.write(() => forgetRequests(), { durable: false });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#endTimer();
    await this.#running?.catch(() => {});
  }

  async #round(db: Database): Promise<void> {
    do await this.#sweep(db);
    while (await this.#release(db));
  }

  async #sweep(db: Database): Promise<void> {
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

  /** Gives up what runs have stored that are over. Gives whether there was something. */
  async #release(db: Database): Promise<boolean> {
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
