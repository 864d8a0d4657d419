import type { FeedEvent } from '../feed.ts';

/** Who is looking at which run, in this process. */
export interface Viewers {
  has(runId: string): boolean;
  /** Counts the reader of these events in, from the turn's start until it leaves. */
  watching(events: AsyncIterable<FeedEvent>): AsyncGenerator<FeedEvent>;
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
    async *watching(events) {
      let runId: string | undefined;
      try {
        for await (const event of events) {
          if (runId === undefined && event.type === 'chunk') {
            runId = event.chunk.turnStart?.snapshotId;
            if (runId !== undefined) change(runId, 1);
          }
          yield event;
        }
      } finally {
        if (runId !== undefined) change(runId, -1);
      }
    },
  };
}
