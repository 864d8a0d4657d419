import { isWaymarkError } from '../../core/error.ts';
import { isJsonObject } from '../../core/json/json.ts';
import { found } from '../http/answer.ts';
import type { OpenCall, RequestContext } from '../http/server-context.ts';
import type { FeedBatch } from './feed.ts';

/**
 * Runs a turn; one that is in its way is stopped first. The clients of these protocols stop by leaving, which a server
 * cannot tell from a reload: the turn continues until the page sends something else. While another client watches, it is not aborted.
 */
export async function runAfterStop(
  c: RequestContext,
  { agent, options }: OpenCall,
  viewers: Viewers,
  run: () => Promise<Response>,
): Promise<Response> {
  try {
    return await run();
  } catch (error) {
    const running = runningIn(error);
    if (running === undefined) throw error;
    // The news that the page has left may be on its way.
    if (viewers.has(running)) await c.get('server').clock.sleep(200);
    if (viewers.has(running)) throw error;
    await agent.abort(running, options);
    await agent.wait(running, options);
    return run();
  }
}

export async function stopRunning(
  { agent, options }: OpenCall,
  sessionId: string,
): Promise<Response> {
  const { running } = found(await agent.getSession(sessionId, options), 'session', sessionId);
  if (running !== undefined) await agent.abort(running, options);
  return new Response(null, { status: 204 });
}

/** The run that a session is busy with, of the error for another one. */
export function runningIn(error: unknown): string | undefined {
  if (!isWaymarkError(error) || error.status !== 'ABORTED') return undefined;
  const running = isJsonObject(error.details) ? error.details.running : undefined;
  return typeof running === 'string' ? running : undefined;
}

/** The clients that follow a run, in this process. */
interface Viewers {
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
