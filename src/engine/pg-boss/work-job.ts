import type { Agent } from '../../agent/contract/agent.ts';
import { defined } from '../../core/json/json.ts';
import type { Clock } from '../../core/time.ts';
import { parseShape } from '../../protocol/parse.ts';
import type { ClaimedRun, EngineEnv } from '../engine.ts';
import { runJob } from './job.ts';
import { type FetchedJob, type Queue, runQueue } from './queue.ts';

/** Prefix of the worker names of queued runs. */
export const queueWorker = 'queue/';

export interface WorkEnv {
  readonly engine: EngineEnv;
  readonly completion: ReturnType<typeof createJobCompletion>;
}

/** Milliseconds before the queue offers a run again that another worker holds, or that waits for its turn as a suspect. */
const heldMs = 1_000;

export interface Assignment {
  readonly agent: Agent;
  readonly job: FetchedJob;
}

/**
 * Executes the runs of jobs, each until it has ended or another worker has taken it, and completes or returns the job. Claims
 * all of them in one query. Returns a promise for each job.
 */
export function workJob(env: WorkEnv, batch: readonly Assignment[]): readonly Promise<void>[] {
  const claiming = claimAll(env, batch);
  // Every job below handles the rejection; an empty batch would leave it unhandled.
  claiming.catch(() => {});
  return batch.map(async ({ agent, job }) => {
    try {
      await execute(env, job, (await claiming).get(job.id));
    } catch (error) {
      env.engine.report(error, { agent: agent.name, runId: job.id });
      await env.completion.returnJob(job, 'error', heldMs);
    }
  });
}

async function claimAll(
  { engine }: WorkEnv,
  batch: readonly Assignment[],
): Promise<ReadonlyMap<string, ClaimedRun>> {
  const claimed = await engine.claim({
    runIds: batch.map(({ job }) => job.id),
    waitingAs: queueWorker,
    worker: `${queueWorker}${engine.worker}`,
  });
  return new Map(claimed.map((each) => [each.run.runId, each]));
}

async function execute(
  { engine, completion }: WorkEnv,
  job: FetchedJob,
  claimed: ClaimedRun | undefined,
): Promise<void> {
  if (claimed === undefined) {
    const { agent, owner } = parseShape(runJob, job.data, 'job');
    if (await engine.isOpen(defined({ agent, owner }), job.id)) {
      await completion.returnJob(job, 'held', heldMs);
    } else completion.done(job);
    return;
  }
  const outcome = await claimed.execute();
  if (outcome === 'ended') completion.done(job);
  else await completion.returnJob(job, 'handed-over');
}

/** Why a job returns to the queue; the next worker can read it. */
type ReturnReason = 'handed-over' | 'not-mine' | 'held' | 'error';

/** Milliseconds for which completions are batched. */
const gatherMs = 20;
/** Retries of returning a job to the queue, and the milliseconds between them. */
const tries = 5;
const pauseMs = 1_000;

export function createJobCompletion(
  queue: Queue,
  { clock, onError }: { readonly clock: Clock; readonly onError: (error: unknown) => void },
) {
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
  /** Writes the completions that are still buffered. */
  const flush = (): Promise<void> => {
    telling = telling.then(tell);
    return telling;
  };

  return {
    flush,
    /** Completes a job, in batches. If the batch is lost, the next worker finds that the run has ended. */
    done(job: FetchedJob): void {
      ended.push(job);
      if (isWaiting) return;
      isWaiting = true;
      void clock.sleep(gatherMs).then(() => {
        isWaiting = false;
        return flush();
      });
    },
    /** Returns a job to the queue, so that a worker continues it, `delayMs` from now at the earliest. */
    async returnJob(job: FetchedJob, reason: ReturnReason, delayMs = 0): Promise<void> {
      for (let left = tries; left > 0; left--) {
        try {
          const boss = await queue.open();
          // Fenced by the attempt: `fail` ignores a job that another worker holds by now, and `update` changes only a waiting one.
          await boss.fail(runQueue, job, { waymark: reason });
          if (delayMs <= 0) return;
          const startAfter = Math.ceil(delayMs / 1000);
          await boss.update(runQueue, undefined, { id: job.id, startAfter });
          return;
        } catch (error) {
          onError(error);
          // The database may be unavailable. A job that cannot be returned counts as the work of a dead worker.
          await clock.sleep(pauseMs);
        }
      }
    },
  };
}
