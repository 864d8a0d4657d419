import type { Clock } from '../../core/time/clock.ts';
import type { FetchedJob, Queue } from './queue.ts';
import { runQueue } from './queue.ts';

/** Why a job returns to the queue; the next worker can read it. */
export type PutBackReason = 'handed-over' | 'not-mine' | 'held' | 'error';

export interface PutBackOptions {
  /** Milliseconds before the job may be fetched again. @default 0 */
  readonly delayMs?: number;
}

/** Completes jobs, or returns them to the queue. */
export interface JobCompletion {
  /** Completes a job, in batches. If the batch is lost, the next worker finds that the run has ended. */
  done(job: FetchedJob): void;
  /** Returns a job to the queue, so that a worker continues it. */
  putBack(job: FetchedJob, reason: PutBackReason, options?: PutBackOptions): Promise<void>;
  /** Writes the completions that are still buffered. */
  flush(): Promise<void>;
}

/** Milliseconds for which completions are batched. */
const gatherMs = 20;
/** Retries of returning a job to the queue, and the milliseconds between them. */
const tries = 5;
const pauseMs = 1_000;

export function createJobCompletion(
  queue: Queue,
  { clock, onError }: { readonly clock: Clock; readonly onError: (error: unknown) => void },
): JobCompletion {
  let ended: FetchedJob[] = [];
  let telling: Promise<void> = Promise.resolve();
  let isWaiting = false;

  const tell = async (): Promise<void> => {
    const jobs = ended;
    ended = [];
    if (jobs.length === 0) return;
    try {
      const boss = await queue.open();
      await boss.complete(runQueue, jobs);
    } catch (error) {
      // Their heartbeats stop, and the worker that fetches them next finds that the runs have ended.
      onError(error);
    }
  };
  const flush = (): Promise<void> => {
    telling = telling.then(tell);
    return telling;
  };

  return {
    done(job) {
      ended.push(job);
      if (isWaiting) return;
      isWaiting = true;
      void clock.sleep(gatherMs).then(() => {
        isWaiting = false;
        return flush();
      });
    },
    async putBack(job, reason, options = {}) {
      for (let left = tries; left > 0; left--) {
        const error = await tryPutBack(job, reason, options);
        if (error === undefined) return;
        onError(error);
        // The database may be unavailable. A job that cannot be returned counts as the work of a dead worker.
        await clock.sleep(pauseMs);
      }
    },
    flush,
  };

  async function tryPutBack(
    job: FetchedJob,
    reason: PutBackReason,
    { delayMs = 0 }: PutBackOptions,
  ): Promise<unknown> {
    try {
      const boss = await queue.open();
      // Fenced by the attempt: `fail` ignores a job that another worker holds by now, and `update` changes only a waiting one.
      await boss.fail(runQueue, job, { waymark: reason });
      if (delayMs <= 0) return undefined;
      await boss.update(runQueue, undefined, {
        id: job.id,
        startAfter: Math.ceil(delayMs / 1000),
      });
      return undefined;
    } catch (error) {
      return error ?? new Error('The job could not be returned to the queue.');
    }
  }
}
