import { isWaymarkError, type Status } from '../../core/error.ts';
import type { RunRef, RunSupport } from '../contract/store.ts';
import { runningOf } from './errors.ts';

/** A store that answers with one of these has decided. Anything else may have kept it from writing. */
const decided: ReadonlySet<Status> = new Set([
  'ABORTED',
  'NOT_FOUND',
  'INVALID_ARGUMENT',
  'FAILED_PRECONDITION',
]);

/** Runs remembered at most; their claims expire by themselves. */
const most = 1000;

/**
 * Runs whose release could not be written, for example because the disk was full. They are over for this process: when one of
 * them is in the way of a call, it is released first and the call is made again.
 */
export class OwedReleases {
  readonly #release: RunSupport['release'];
  readonly #owed = new Map<string, RunRef>();

  constructor(release: RunSupport['release']) {
    this.#release = release;
  }

  /** As {@link RunSupport.release}; one that could not be written is remembered. */
  readonly release: RunSupport['release'] = async (ref, events, requests) => {
    try {
      await this.#release(ref, events, requests);
    } catch (error) {
      if (isWaymarkError(error) && decided.has(error.status)) throw error;
      this.#owed.set(ref.runId, ref);
      const [oldest] = this.#owed.keys();
      if (this.#owed.size > most && oldest !== undefined) this.#owed.delete(oldest);
      throw error;
    }
  };

  /** The same call, which runs that are over do not hold up. */
  freeing<Args extends readonly unknown[], Result>(
    call: (...args: Args) => Promise<Result>,
  ): (...args: Args) => Promise<Result> {
    return async (...args) => {
      try {
        return await call(...args);
      } catch (error) {
        const ref = this.#owed.get(runningOf(error) ?? '');
        if (ref === undefined) throw error;
        await this.#settle(ref);
        return await call(...args);
      }
    };
  }

  async #settle(ref: RunRef): Promise<void> {
    try {
      await this.#release(ref);
    } catch (error) {
      // It was released after all, or another worker has it.
      if (!isWaymarkError(error) || !decided.has(error.status)) throw error;
    }
    this.#owed.delete(ref.runId);
  }
}
