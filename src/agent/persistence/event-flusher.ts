import type { Clock } from '../../core/time/clock.ts';
import { after } from '../../core/time/timers.ts';

/** How long events are collected before they are written, in milliseconds. */
const flushAfter = 25;

/** Runs whose events are written at a time. When more have some, their batches become larger instead of more frequent. */
const runsPerFlush = 25;

/** After so many flushes every run has had its turn, however many there are. */
const maxFlushes = 8;

/** A log in the queue; without `log` it has left. */
export interface FlushTicket {
  log: { flush(): void } | undefined;
}

/**
 * Writes the events of all runs of this process by one timer. Runs that are written at a time append in the same turn of the
 * event loop, so that a store can do it in one transaction.
 */
export class EventFlusher {
  readonly #clock: Clock;
  /** The one that has waited longest is first. */
  #queue: FlushTicket[] = [];
  #isScheduled = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Flushes a log once, soon. To cancel that, remove the log from the ticket, so that nothing holds an ended log. */
  add(log: { flush(): void }): FlushTicket {
    const ticket: FlushTicket = { log };
    this.#queue.push(ticket);
    this.#schedule();
    return ticket;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    after(this.#clock, flushAfter, () => this.#flush());
  }

  #flush(): void {
    this.#isScheduled = false;
    const waiting = this.#queue.filter(({ log }) => log !== undefined);
    const due = Math.max(runsPerFlush, Math.ceil(waiting.length / maxFlushes));
    this.#queue = waiting.slice(due);
    if (this.#queue.length > 0) this.#schedule();
    for (const { log } of waiting.slice(0, due)) log?.flush();
  }
}
