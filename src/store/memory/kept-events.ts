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

  /** How many batches there are; they only become more. */
  get count(): number {
    return this.#batches.length;
  }

  /** The batches behind the first ones. */
  batchesFrom(count: number): readonly EventBatch[] {
    return this.#batches.slice(count);
  }

  /** Adds a batch that comes after the others. */
  add(batch: EventBatch): void {
    this.#batches.push(batch);
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
