import { hasStatus } from '../../core/error.ts';
import { hasMetrics, recordValue } from '../../core/metrics.ts';
import { after, type Clock } from '../../core/time.ts';
import { attributes } from '../../core/trace-names.ts';
import { withPatchOnly } from '../../protocol/artifacts.ts';
import type { Chunk } from '../../protocol/turn.ts';
import type { EventCursor, EventSupport, RunRef, Scope } from '../../store/contract/store.ts';
import { EventBuffer, type LogEvent } from './caller-cursor.ts';

/** Events kept in memory; a longer turn drops its oldest. */
const maxEvents = 20_000;

interface EventLogOptions {
  readonly runId: string;
  readonly scope: Scope;
  readonly attempt: number;
}

/**
 * The events of one run: numbered, kept in memory for the caller's cursor and for watchers, and written in batches when the
 * run is durable.
 */
export class EventLog {
  readonly runId: string;
  readonly scope: Scope;
  readonly attempt: number;
  readonly buffer: EventBuffer;
  readonly #flusher: EventFlusher;
  #seq = 0;
  #staged: LogEvent | undefined;
  /** Events that came while one was staged: they become visible after it. */
  #held: LogEvent[] | undefined;
  #ended = false;
  #status: Chunk['status'];
  #sink: { readonly events: EventSupport; readonly run: RunRef } | undefined;
  #durable = false;
  /** The sequence number of the first event that the store does not have. */
  #unwritten = 0;
  #isQueued = false;
  #appending: Promise<void> | undefined;
  /** When the oldest event came that waits for its batch, if metrics are collected. */
  #waitingSince: number | undefined;

  constructor(options: EventLogOptions & { readonly flusher: EventFlusher }) {
    this.runId = options.runId;
    this.scope = options.scope;
    this.attempt = options.attempt;
    this.buffer = new EventBuffer(options.runId);
    this.#flusher = options.flusher;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** The last status that the agent itself sent. */
  get status(): Chunk['status'] {
    return this.#status;
  }

  get isStored(): boolean {
    return this.#sink !== undefined && !this.#isLate();
  }

  get truncated(): boolean {
    return this.buffer.first > 0;
  }

  /** Whether the store keeps the run's events, including those of a process that took the run over. */
  get durable(): boolean {
    return this.#durable;
  }

  /** Writes events to the store from now on, including those that came before. */
  writeTo(events: EventSupport, run: RunRef): void {
    this.#sink = { events, run };
    this.#durable = true;
    if (this.#isLate() && !this.#ended) this.#schedule();
  }

  /** As {@link EventLog.writeTo}, once this write has succeeded. The write stores the events that came before. */
  async writeWith<Value>(
    sink: { readonly events: EventSupport; readonly run: RunRef },
    write: (events: readonly LogEvent[]) => Promise<Value>,
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

  push(chunk: Chunk, shown: Chunk | undefined): LogEvent {
    const event = this.#number(chunk, shown);
    if (this.#staged === undefined) this.#publish(event);
    else {
      this.#held ??= [];
      this.#held.push(event);
    }
    if (this.#sink !== undefined && !this.#ended) this.#schedule();
    return event;
  }

  /** Numbers an event without showing it: what it reports has not been saved yet. */
  stage(chunk: Chunk, shown: Chunk | undefined): LogEvent {
    this.#staged = this.#number(chunk, shown);
    return this.#staged;
  }

  /** Shows a staged event, which was written together with what it reports. */
  publishStaged(event: LogEvent): void {
    this.#staged = undefined;
    this.#publish(event);
    // Nothing of an attached run is in the store before the run is detached.
    if (this.#sink !== undefined) this.#unwritten = event.seq + 1;
    this.#publishHeld();
  }

  /**
   * Does a write that also stores the unwritten events; they count as written when it succeeds. No other batch is on its way
   * meanwhile, so batches never overtake each other.
   */
  takeAlong<Value>(write: (events: readonly LogEvent[]) => Promise<Value>): Promise<Value> {
    const isIdle = this.#sink === undefined && this.#appending === undefined;
    return isIdle ? this.#takeNothingAlong(write) : this.#takeUnwrittenAlong(write);
  }

  async #takeUnwrittenAlong<Value>(
    write: (events: readonly LogEvent[]) => Promise<Value>,
  ): Promise<Value> {
    while (this.#appending !== undefined) await this.#appending;
    this.#waitingSince = undefined;
    if (this.#sink === undefined) return await this.#takeNothingAlong(write);
    const events = this.#takeUnwritten();
    const writing = write(events);
    this.#appending = writing.then(ignore, ignore);
    try {
      return await writing;
    } catch (error) {
      this.#unwritten = events[0]?.seq ?? this.#unwritten;
      throw error;
    } finally {
      this.#appending = undefined;
      this.#publishHeld();
    }
  }

  /** Without a sink no batch can be on its way. */
  async #takeNothingAlong<Value>(
    write: (events: readonly LogEvent[]) => Promise<Value>,
  ): Promise<Value> {
    try {
      return await write([]);
    } finally {
      this.#publishHeld();
    }
  }

  positionAfter(after: EventCursor | undefined): number {
    if (after === undefined || after.attempt < this.attempt) return 0;
    return after.attempt > this.attempt ? this.buffer.end : this.buffer.positionOf(after.seq + 1);
  }

  end(): void {
    this.#ended = true;
    if (this.#isQueued && !this.#isLate()) {
      this.#isQueued = false;
      this.#flusher.delete(this);
    }
    this.buffer.wake();
  }

  #number(chunk: Chunk, shown: Chunk | undefined): LogEvent {
    return { attempt: this.attempt, seq: this.#seq++, chunk, shown, kept: this.#durable };
  }

  #publish(event: LogEvent): void {
    const { status, agent } = event.chunk;
    if (status !== undefined && agent === undefined) this.#status = status;
    this.buffer.push(event);
    if (this.buffer.end - this.buffer.first > maxEvents) this.#drop();
  }

  #publishHeld(): void {
    const staged = this.#staged;
    this.#staged = undefined;
    const held = this.#held;
    if (held === undefined) {
      // The write failed: the next attempt reuses the number, so that numbers have no gap.
      if (staged?.seq === this.#seq - 1) this.#seq = staged.seq;
      return;
    }
    this.#held = undefined;
    for (const event of held) this.#publish(event);
  }

  #drop(): void {
    const { buffer } = this;
    const tenth = buffer.first + maxEvents / 10;
    // Events must reach the store before they are dropped.
    const written = this.#sink === undefined ? tenth : buffer.positionOf(this.#unwritten);
    buffer.drop(Math.min(tenth, written));
  }

  /** The events that the store does not have. They count as written from now on. */
  #takeUnwritten(): readonly LogEvent[] {
    if (this.#sink === undefined) return [];
    const events = this.buffer.from(this.buffer.positionOf(this.#unwritten));
    this.#unwritten = (events.at(-1)?.seq ?? this.#unwritten - 1) + 1;
    const isEdit = ({ chunk }: LogEvent): boolean => chunk.artifactPatch !== undefined;
    if (!events.some(isEdit)) return events;
    return events.map((event) => ({ ...event, chunk: withPatchOnly(event.chunk) }));
  }

  #isLate(): boolean {
    return this.#sink !== undefined && this.buffer.positionOf(this.#unwritten) < this.buffer.end;
  }

  /** Writes the events that the store does not have; retries later when that fails. */
  flush(): void {
    this.#isQueued = false;
    // The previous batch is still being written.
    if (this.#appending !== undefined) this.#schedule();
    else this.#append();
  }

  #schedule(): void {
    if (this.#isQueued) return;
    if (hasMetrics()) this.#waitingSince ??= performance.now();
    this.#isQueued = true;
    this.#flusher.add(this);
  }

  #append(): void {
    const sink = this.#sink;
    const batch = this.#takeUnwritten();
    const first = batch[0];
    if (sink === undefined || first === undefined) return;
    const since = this.#waitingSince;
    this.#waitingSince = undefined;
    const written = (): void => {
      this.#appending = undefined;
      if (since === undefined) return;
      const seconds = (performance.now() - since) / 1000;
      recordValue('waymark.event_lag', seconds, { [attributes.agent]: this.scope.agent });
    };
    this.#appending = sink.events.append(sink.run, batch).then(written, (error: unknown) => {
      this.#appending = undefined;
      this.#waitingSince = since;
      // A lost run may not write any more; its worker learns that from its heartbeat. Retry after any other error.
      if (hasStatus(error, 'ABORTED')) this.#sink = undefined;
      else this.#retryFrom(first.seq);
    });
  }

  #retryFrom(seq: number): void {
    this.#unwritten = seq;
    this.#schedule();
  }
}

function ignore(): void {}

/** The logs of the runs of this process, and of recently ended runs whose events no store has. */
export interface EventLogs {
  open(options: EventLogOptions): EventLog;
  /** The log of a run in this scope; the runs of other owners are unknown. */
  get(runId: string, scope: Scope): EventLog | undefined;
  close(log: EventLog): void;
  /** Removes the log of a run that another process has: the store has its events. */
  forget(log: EventLog): void;
}

/** How many ended runs can still be watched from memory. */
const maxEnded = 100;

export function createEventLogs(clock: Clock): EventLogs {
  const logs = new Map<string, EventLog>();
  /** A ring: `oldest` is the place of the one that ended first. */
  const ended: EventLog[] = [];
  let oldest = 0;
  const flusher = new EventFlusher(clock);
  const remove = (log: EventLog): void => {
    if (logs.get(log.runId) === log) logs.delete(log.runId);
  };
  return {
    open(options) {
      const log = new EventLog({ ...options, flusher });
      logs.set(options.runId, log);
      return log;
    },
    get(runId, { agent, owner }) {
      const log = logs.get(runId);
      return log?.scope.agent === agent && log.scope.owner === owner ? log : undefined;
    },
    forget(log) {
      log.end();
      remove(log);
    },
    close(log) {
      log.end();
      if (log.isStored) {
        log.buffer.release();
        return remove(log);
      }
      const replaced = ended[oldest];
      ended[oldest] = log;
      oldest = (oldest + 1) % maxEnded;
      if (replaced !== undefined) remove(replaced);
    },
  };
}

/** How long events are collected before they are written, in milliseconds. */
const flushAfter = 25;

/** Runs whose events are written at a time. When more have some, their batches become larger instead of more frequent. */
const runsPerFlush = 25;

/** After so many flushes every run has had its turn, however many there are. */
const maxFlushes = 8;

type Flushed = Pick<EventLog, 'flush'>;

/**
 * Writes the events of all runs of this process by one timer. Runs that are written at a time append in the same turn of the
 * event loop, so that a store can do it in one transaction.
 */
export class EventFlusher {
  readonly #clock: Clock;
  /** The log that has waited longest is first. */
  readonly #queue = new Set<Flushed>();
  #isScheduled = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Flushes a log once, soon. */
  add(log: Flushed): void {
    this.#queue.add(log);
    this.#schedule();
  }

  delete(log: Flushed): void {
    this.#queue.delete(log);
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    after(this.#clock, flushAfter, () => this.#flush());
  }

  #flush(): void {
    this.#isScheduled = false;
    const due = Math.max(runsPerFlush, Math.ceil(this.#queue.size / maxFlushes));
    const logs = [...this.#queue].slice(0, due);
    for (const log of logs) this.#queue.delete(log);
    if (this.#queue.size > 0) this.#schedule();
    for (const log of logs) log.flush();
  }
}
