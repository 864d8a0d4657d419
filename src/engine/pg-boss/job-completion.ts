import type { Clock } from '../../core/time/clock.ts';
import type { FetchedJob, Queue } from './queue.ts';
import { runQueue } from './queue.ts';

/** Why a job goes back to the queue; read by whoever gets it next. */
export type PutBackReason = 'handed-over' | 'not-mine' | 'held' | 'error';

export interface PutBackOptions {
  /** Milliseconds before which nobody should. @default 0 */
  readonly delayMs?: number;
}

/** Tells the queue what became of jobs. */
export interface JobCompletion {
  /** Nobody has to work on it any more. Told in batches; what is never told is found out by the next worker. */
  done(job: FetchedJob): void;
  /** Somebody should go on with it. */
  putBack(job: FetchedJob, reason: PutBackReason, options?: PutBackOptions): Promise<void>;
  /** Tells what has not been told yet. */
  flush(): Promise<void>;
}

/** Milliseconds in which ends are gathered. */
const gatherMs = 20;
/** How often, and how many milliseconds apart, it tries to tell the queue that a job is free. */
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
      // Their heartbeats stop, and whoever gets them next finds that the runs are over.
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
        // The database may be away. What is never put back counts as the work of a dead worker.
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
      // Fenced by the attempt: a job that is somebody else's by now stays as it is, and the update finds only a waiting one.
      await boss.fail(runQueue, job, { waymark: reason });
      if (delayMs <= 0) return undefined;
      await boss.update(runQueue, undefined, {
        id: job.id,
        startAfter: Math.ceil(delayMs / 1000),
      });
      return undefined;
    } catch (error) {
      return error ?? new Error('The queue could not be told.');
    }
  }
}
