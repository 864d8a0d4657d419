import type { Clock } from '../../core/time.ts';
import { code } from '../sql/values/codes.ts';
import type { ObjectStorage } from './driver.ts';

// Expired runs that this object cannot take, such as those of an agent that it does not have, are looked for again after so long.
const pauseMs = 60_000;

const selectDue = `SELECT MIN(heartbeat + ttl) AS due FROM runs WHERE mode <> ${code.attached}`;

/**
 * The one alarm of an object, for the time when the first of its runs expires that no caller waits for. It is set in the same event as the
 * write of the run, and so stored together with it. Heartbeats do not move it: an alarm that comes too early finds nothing, and is set again.
 */
export class RunAlarm {
  readonly #storage: ObjectStorage;
  readonly #clock: Clock;
  /** The time of the alarm, as far as it is known. */
  #at: number | undefined;

  constructor(storage: ObjectStorage, clock: Clock) {
    this.#storage = storage;
    this.#clock = clock;
  }

  /** The alarm has been delivered: there is none any more. */
  delivered(): void {
    this.#at = undefined;
  }

  /** Sets it unless there is an earlier one. `isFruitless`: runs that have expired were just looked for. */
  set({ isFruitless = false } = {}): void {
    const due = this.#due();
    if (due === undefined) return;
    const earliest = this.#clock.now() + (isFruitless ? pauseMs : 0);
    const at = Math.max(due, earliest);
    if (this.#at !== undefined && this.#at <= at) return;
    this.#at = at;
    // Not awaited: it is stored with the write before it, or the object ends.
    void this.#storage.setAlarm(at);
  }

  #due(): number | undefined {
    for (const [due] of this.#storage.sql.exec(selectDue).raw()) {
      return typeof due === 'number' ? due : undefined;
    }
    return undefined;
  }
}
