import { isWaymarkError } from '../../core/error.ts';
import type { Clock } from '../../core/time/clock.ts';
import type { Chunk } from '../../protocol/turn.ts';
import type {
  EventCursor,
  EventSupport,
  RunEvent,
  RunRef,
  Scope,
} from '../../store/contract/store.ts';

/** Events kept in memory for those who watch a turn of this process; a longer turn loses its oldest. */
const maxEvents = 20_000;

/** How long events wait for company before they are written. */
const flushAfter = 25;

export interface EventLogOptions {
  readonly runId: string;
  readonly scope: Scope;
  readonly attempt: number;
}

/** The events of one run as they happen: numbered, kept for watchers, and written in batches when the run is durable. */
export class EventLog {
  readonly runId: string;
  readonly scope: Scope;
  readonly attempt: number;
  readonly #clock: Clock;
  #events: RunEvent[] = [];
  #truncated = false;
  #seq = 0;
  #prepared: RunEvent | undefined;
  readonly #held: RunEvent[] = [];
  #ended = false;
  #status: Chunk['status'];
  readonly #listeners = new Set<() => void>();
  #sink: { readonly events: EventSupport; readonly run: RunRef } | undefined;
  #durable = false;
  #written = 0;
  #stopFlushing: (() => void) | undefined;
  #appending: Promise<void> | undefined;

  constructor(options: EventLogOptions & { readonly clock: Clock }) {
    this.runId = options.runId;
    this.scope = options.scope;
    this.attempt = options.attempt;
    this.#clock = options.clock;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** The last status that the agent itself sent. */
  get status(): Chunk['status'] {
    return this.#status;
  }

  /** Whether the store has every event that is here. */
  get isStored(): boolean {
    return this.#sink !== undefined && !this.#isLate();
  }

  /** Whether the oldest events are no longer here. */
  get truncated(): boolean {
    return this.#truncated;
  }

  /** From now on events go to the store as well, those that came before included. */
  writeTo(events: EventSupport, run: RunRef): void {
    this.#sink = { events, run };
    this.#durable = true;
    if (this.#events.length > 0) this.#schedule();
  }

  /** As {@link EventLog.writeTo}, once this write has succeeded, which takes along the events that came before. */
  async writeWith<Value>(
    sink: { readonly events: EventSupport; readonly run: RunRef },
    write: (events: readonly RunEvent[]) => Promise<Value>,
  ): Promise<Value> {
    this.#sink = sink;
    try {
      const value = await this.takeAlong(write);
      this.#durable = true;
      return value;
    } catch (error) {
      this.#sink = undefined;
      throw error;
    }
  }

  /** Whether the store has the run's events, also those of whoever took it over from this process. */
  get durable(): boolean {
    return this.#durable;
  }

  push(chunk: Chunk): RunEvent {
    const event = this.#number(chunk);
    // What comes while something is being saved comes after the event that tells of it.
    if (this.#prepared === undefined) this.#publish(event);
    else this.#held.push(event);
    if (this.#sink !== undefined) this.#schedule();
    return event;
  }

  /** The next event, which nobody sees yet: it says that something is saved which is not. */
  stage(chunk: Chunk): RunEvent {
    this.#prepared = this.#number(chunk);
    return this.#prepared;
  }

  /** Shows an event that has been written together with what it tells of. */
  publishStaged(event: RunEvent): void {
    this.#publish(event);
    // Of a run that only this process knows, nothing is in the store before it is detached.
    if (this.#sink !== undefined) this.#written = event.seq + 1;
    this.#letGo();
  }

  /**
   * Does a write that takes along the events that the store does not have yet; they count as written when it succeeds. No
   * other batch is on its way meanwhile, so that none overtakes another.
   */
  async takeAlong<Value>(write: (events: readonly RunEvent[]) => Promise<Value>): Promise<Value> {
    while (this.#appending !== undefined) await this.#appending;
    if (this.#sink === undefined) return await this.#takeNothingAlong(write);
    const events = this.#takeUnwritten();
    const writing = write(events);
    this.#appending = writing.then(ignore, ignore);
    try {
      return await writing;
    } catch (error) {
      this.#written = events[0]?.seq ?? this.#written;
      throw error;
    } finally {
      this.#appending = undefined;
      this.#letGo();
    }
  }

  /** No batch can be on its way to a store that is given none. */
  async #takeNothingAlong<Value>(
    write: (events: readonly RunEvent[]) => Promise<Value>,
  ): Promise<Value> {
    try {
      return await write([]);
    } finally {
      this.#letGo();
    }
  }

  read(after: EventCursor | undefined): readonly RunEvent[] {
    if (after === undefined || after.attempt < this.attempt) return this.#events.slice();
    if (after.attempt > this.attempt) return [];
    return this.#events.slice(this.#placeOf(after.seq + 1));
  }

  onEvent(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  end(): void {
    this.#ended = true;
    this.#rest();
    this.#wake();
  }

  #drop(): void {
    // What the store is going to have must reach it first.
    const written = this.#sink === undefined ? maxEvents : this.#placeOf(this.#written);
    this.#events.splice(0, Math.min(maxEvents / 10, written));
    this.#truncated = true;
  }

  #number(chunk: Chunk): RunEvent {
    return { attempt: this.attempt, seq: this.#seq++, chunk };
  }

  #publish(event: RunEvent): void {
    const { status, agent } = event.chunk;
    if (status !== undefined && agent === undefined) this.#status = status;
    this.#events.push(event);
    if (this.#events.length > maxEvents) this.#drop();
    this.#wake();
  }

  /** The events that the store does not have yet. They count as written from now on. */
  #takeUnwritten(): readonly RunEvent[] {
    if (this.#sink === undefined) return [];
    const events = this.#events.slice(this.#placeOf(this.#written));
    this.#written = (events.at(-1)?.seq ?? this.#written - 1) + 1;
    return events;
  }

  #letGo(): void {
    this.#prepared = undefined;
    if (this.#held.length === 0) return;
    for (const event of this.#held.splice(0)) this.#publish(event);
  }

  /** Where the first event from a number on stands; numbers grow, but some may be missing. */
  #placeOf(seq: number): number {
    let low = 0;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#events[middle]?.seq ?? seq) < seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #wake(): void {
    for (const listener of this.#listeners) listener();
  }

  #schedule(): void {
    if (this.#ended) return;
    this.#stopFlushing ??= this.#clock.every(flushAfter, () => void this.#flush());
  }

  async #flush(): Promise<void> {
    // The batch before this one is still on its way.
    if (this.#appending !== undefined) return;
    await this.#append();
    this.#rest();
  }

  /** Looks no longer when the store has everything. */
  #rest(): void {
    if (this.#isLate()) return;
    this.#stopFlushing?.();
    this.#stopFlushing = undefined;
  }

  #isLate(): boolean {
    return this.#sink !== undefined && this.#placeOf(this.#written) < this.#events.length;
  }

  async #append(): Promise<void> {
    const sink = this.#sink;
    const batch = this.#takeUnwritten();
    const first = batch[0];
    if (sink === undefined || first === undefined) return;
    this.#appending = sink.events.append(sink.run, batch).catch((error: unknown) => {
      // A run that was lost may write no more; its worker learns so from its heartbeat. Anything else may pass: try again.
      if (isWaymarkError(error) && error.status === 'ABORTED') this.#sink = undefined;
      else this.#written = first.seq;
    });
    await this.#appending;
    this.#appending = undefined;
  }
}

function ignore(): void {}

/** The logs of the runs of this process, and of those that ended a little while ago and whose events no store has. */
export interface EventLogs {
  open(options: EventLogOptions): EventLog;
  /** The log of a run in this scope; another owner's is unknown. */
  get(runId: string, scope: Scope): EventLog | undefined;
  close(log: EventLog): void;
  /** Another process has the run: what is known of it is in the store. */
  forget(log: EventLog): void;
}

/** How many ended runs can still be watched from memory. */
const maxEnded = 100;

export function createEventLogs(clock: Clock): EventLogs {
  // Each in a place of its own that is emptied: what a map has let go of stays in the heap for a while.
  const places = new Map<string, { log: EventLog | undefined }>();
  const ended: EventLog[] = [];
  const remove = (log: EventLog): void => {
    const place = places.get(log.runId);
    if (place?.log !== log) return;
    places.delete(log.runId);
    place.log = undefined;
  };
  return {
    open(options) {
      const log = new EventLog({ ...options, clock });
      places.set(options.runId, { log });
      return log;
    },
    get(runId, { agent, owner }) {
      const log = places.get(runId)?.log;
      return log?.scope.agent === agent && log.scope.owner === owner ? log : undefined;
    },
    forget(log) {
      log.end();
      remove(log);
    },
    close(log) {
      log.end();
      // Whoever still asks for it gets it from there.
      if (log.isStored) return remove(log);
      ended.push(log);
      const oldest = ended.length > maxEnded ? ended.shift() : undefined;
      if (oldest !== undefined) remove(oldest);
    },
  };
}
