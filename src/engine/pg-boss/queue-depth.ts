import { WaymarkError } from '../../core/error.ts';
import type { Clock } from '../../core/time.ts';
import { type Queue, runQueue } from './queue.ts';

interface QueueDepth {
  /** Number of runs that could start now; counted up to the limit. */
  readonly waiting: number;
  readonly oldestMs: number;
}

/** Milliseconds for which a count is cached. */
const freshMs = 500;
const retryAfterSeconds = 5;

/** Measures the queue, and rejects runs beyond its limit. */
export function createQueueGauge(queue: Queue, clock: Clock, maxWaiting: number) {
  let last: { readonly at: number; readonly depth: QueueDepth } | undefined;
  let counting: Promise<QueueDepth> | undefined;
  let admitted = 0;

  const count = async (): Promise<QueueDepth> => {
    // Counting further than one above the limit would only cost time.
    const [row] = await queue.query<{ waiting: number; oldest: number | null }>(
      `SELECT count(*)::int AS waiting,
         (extract(epoch FROM now() - min(since)) * 1000)::float8 AS oldest
       FROM (
         SELECT greatest(created_on, start_after) AS since FROM "${queue.schema}".job
         WHERE name = $1 AND state < 'active' AND start_after <= now()
         ORDER BY created_on LIMIT $2
       ) AS ready`,
      [runQueue, maxWaiting + 1],
    );
    admitted = 0;
    const depth = {
      waiting: row?.waiting ?? 0,
      oldestMs: Math.max(0, Math.round(row?.oldest ?? 0)),
    };
    last = { at: clock.now(), depth };
    return depth;
  };
  const depth = async (): Promise<QueueDepth> => {
    await queue.open();
    counting ??= count().finally(() => {
      counting = undefined;
    });
    return await counting;
  };

  return {
    depth,
    /** Throws RESOURCE_EXHAUSTED when the queue is full. */
    async admit(): Promise<void> {
      const known = last !== undefined && clock.now() - last.at < freshMs ? last.depth : undefined;
      const { waiting } = known ?? (await depth());
      if (waiting + admitted < maxWaiting) {
        admitted++;
        return;
      }
      throw new WaymarkError(
        'RESOURCE_EXHAUSTED',
        `${maxWaiting} runs are waiting for a worker already. Try again in ${retryAfterSeconds} seconds, or start more workers.`,
        { details: { retryAfter: retryAfterSeconds, waiting: waiting + admitted } },
      );
    },
  };
}
