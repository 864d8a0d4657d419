import type { FeedBatch } from './feed.ts';

/** Who is looking at which run, in this process. */
export interface Viewers {
  has(runId: string): boolean;
  /** Counts the reader of these events in, from the turn's start until it leaves. */
  watching(batches: AsyncIterable<FeedBatch>): AsyncGenerator<FeedBatch>;
}

export function createViewers(): Viewers {
  const counts = new Map<string, number>();
  const change = (runId: string, by: number): void => {
    const count = (counts.get(runId) ?? 0) + by;
    if (count > 0) counts.set(runId, count);
    else counts.delete(runId);
  };
  return {
    has: (runId) => counts.has(runId),
    async *watching(batches) {
      let runId: string | undefined;
      try {
        for await (const batch of batches) {
          if (runId === undefined) {
            runId = startIn(batch);
            if (runId !== undefined) change(runId, 1);
          }
          yield batch;
        }
      } finally {
        if (runId !== undefined) change(runId, -1);
      }
    },
  };
}

function startIn(batch: FeedBatch): string | undefined {
  for (const event of batch) {
    if (event.type === 'chunk' && event.chunk.turnStart) return event.chunk.turnStart.snapshotId;
  }
  return undefined;
}
