import type { EventCursor, RunEvent } from '../contract/store.ts';
import { isAfter, packEvents, unpackEvents } from '../rules/event-body.ts';

/** Events of one attempt that came together. */
export interface EventBatch {
  readonly attempt: number;
  /** The number of the last one. */
  readonly last: number;
  readonly body: string;
}

/**
 * The events of a run in the order of their numbers, as texts: as objects they take ten times the memory, and a busy server
 * holds the events of a whole minute.
 */
export class KeptEvents {
  readonly #batches: EventBatch[] = [];

  /** The number of batches that a store has kept elsewhere. */
  #taken = 0;

  get batches(): readonly EventBatch[] {
    return this.#batches;
  }

  /** The batches that were appended since the last call. */
  takeNew(): readonly EventBatch[] {
    const fresh = this.#batches.slice(this.#taken);
    this.#taken = this.#batches.length;
    return fresh;
  }

  /** Adds a batch that comes after the others, from where it is kept. */
  add(batch: EventBatch): void {
    this.#batches.push(batch);
    this.#taken = this.#batches.length;
  }

  /** Adds those that are not there already. */
  append(events: readonly RunEvent[]): void {
    const end = cursorOf(this.#batches.at(-1));
    const fresh = events.filter((event) => isAfter(event, end));
    for (const [attempt, group] of Map.groupBy(fresh, (event) => event.attempt)) {
      const last = group.at(-1)?.seq ?? 0;
      this.#batches.push({ attempt, last, body: packEvents(group) });
    }
  }

  /** At most `limit` events after a place, and whether they are the last. */
  read(
    after: EventCursor | undefined,
    limit: number,
  ): { readonly events: readonly RunEvent[]; readonly isLast: boolean } {
    const events: RunEvent[] = [];
    for (const batch of this.#batches) {
      if (!isAfter({ attempt: batch.attempt, seq: batch.last }, after)) continue;
      for (const event of unpackEvents(batch.attempt, batch.body)) {
        if (isAfter(event, after)) events.push(event);
      }
      if (events.length > limit) break;
    }
    return { events: events.slice(0, limit), isLast: events.length <= limit };
  }
}

function cursorOf(batch: EventBatch | undefined): EventCursor | undefined {
  return batch && { attempt: batch.attempt, seq: batch.last };
}
