import type { Clock } from '../core/clock.ts';
import { isWaymarkError } from '../core/error.ts';
import type { Chunk } from '../protocol/turn.ts';
import type { EventCursor, EventSupport, RunEvent, RunRef, Scope } from '../session/store.ts';

/** Events kept in memory for those who watch a turn of this process; a longer turn loses its oldest. */
const mostEvents = 20_000;

/** How long events wait for company before they are written. */
const flushAfter = 25;

export interface RunLogOptions {
  readonly runId: string;
  readonly scope: Scope;
  readonly attempt: number;
}

/** The events of one run as they happen: numbered, kept for watchers, and written in batches when the run is durable. */
export class RunLog {
  readonly runId: string;
  readonly scope: Scope;
  readonly attempt: number;
  readonly #clock: Clock;
  #events: RunEvent[] = [];
  #dropped = 0;
  #seq = 0;
  #ended = false;
  readonly #listeners = new Set<() => void>();
  #sink: { readonly events: EventSupport; readonly run: RunRef } | undefined;
  #written = 0;
  #scheduled = false;
  #appending: Promise<void> | undefined;

  constructor(options: RunLogOptions & { readonly clock: Clock }) {
    this.runId = options.runId;
    this.scope = options.scope;
    this.attempt = options.attempt;
    this.#clock = options.clock;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Whether the oldest events are no longer here. */
  get truncated(): boolean {
    return this.#dropped > 0;
  }

  /** From now on events go to the store as well, those that came before included. */
  writeTo(events: EventSupport, run: RunRef): void {
    this.#sink = { events, run };
    if (this.#events.length > 0) this.#schedule();
  }

  get durable(): boolean {
    return this.#sink !== undefined;
  }

  push(chunk: Chunk): RunEvent {
    const event = this.prepare(chunk);
    this.publish(event);
    if (this.#sink !== undefined) this.#schedule();
    return event;
  }

  /** The next event, which nobody sees before {@link RunLog.publish}: it says that something is saved which is not yet. */
  prepare(chunk: Chunk): RunEvent {
    return { attempt: this.attempt, seq: this.#seq, chunk };
  }

  publish(event: RunEvent): void {
    this.#seq = event.seq + 1;
    this.#events.push(event);
    if (this.#events.length > mostEvents) this.#drop();
    this.#wake();
  }

  /** Shows an event that a commit has already written. */
  publishWritten(event: RunEvent): void {
    this.publish(event);
    this.#written = this.#seq;
  }

  /** The events that the store does not have yet, for a commit that takes them along. They count as written. */
  takeUnwritten(): readonly RunEvent[] {
    if (this.#sink === undefined) return [];
    const from = Math.max(0, this.#written - this.#dropped);
    this.#written = this.#seq;
    return this.#events.slice(from);
  }

  /** Waits for the batch that is on its way to the store, so that a commit's events do not overtake it. */
  async settled(): Promise<void> {
    await this.#appending;
  }

  read(after: EventCursor | undefined): readonly RunEvent[] {
    if (after === undefined || after.attempt < this.attempt) return this.#events.slice();
    if (after.attempt > this.attempt) return [];
    return this.#events.slice(Math.max(0, after.seq + 1 - this.#dropped));
  }

  onEvent(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  #drop(): void {
    // What the store is going to have must reach it first.
    const written = this.#sink === undefined ? mostEvents : this.#written - this.#dropped;
    const excess = this.#events.splice(0, Math.min(mostEvents / 10, Math.max(0, written))).length;
    this.#dropped += excess;
  }

  #wake(): void {
    for (const listener of this.#listeners) listener();
  }

  #schedule(): void {
    if (this.#scheduled || this.#ended) return;
    this.#scheduled = true;
    const flush = async (): Promise<void> => {
      await this.#clock.sleep(flushAfter);
      await this.#append();
      this.#scheduled = false;
      if (this.#sink !== undefined && this.#written < this.#seq) this.#schedule();
    };
    void flush();
  }

  async #append(): Promise<void> {
    const sink = this.#sink;
    const batch = this.takeUnwritten();
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

/** The logs of the runs of this process, and of those that ended a little while ago. */
export interface RunLogs {
  open(options: RunLogOptions): RunLog;
  /** The log of a run in this scope; another owner's is unknown. */
  get(runId: string, scope: Scope): RunLog | undefined;
  close(log: RunLog): void;
}

/** How many ended runs can still be watched from memory. */
const mostEnded = 100;

export function createRunLogs(clock: Clock): RunLogs {
  const logs = new Map<string, RunLog>();
  const ended: RunLog[] = [];
  return {
    open(options) {
      const log = new RunLog({ ...options, clock });
      logs.set(options.runId, log);
      return log;
    },
    get(runId, { agent, owner }) {
      const log = logs.get(runId);
      return log?.scope.agent === agent && log.scope.owner === owner ? log : undefined;
    },
    close(log) {
      log.end();
      ended.push(log);
      const oldest = ended.length > mostEnded ? ended.shift() : undefined;
      if (oldest !== undefined && logs.get(oldest.runId) === oldest) logs.delete(oldest.runId);
    },
  };
}
