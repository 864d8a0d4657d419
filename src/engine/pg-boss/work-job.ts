import type { Agent } from '../../agent/spec/agent.ts';
import { parseShape } from '../../protocol/parse.ts';
import type { ClaimedRun, EngineEnv } from '../engine.ts';
import { runJob, scopeOfJob } from './job.ts';
import type { JobCompletion } from './job-completion.ts';
import type { FetchedJob } from './queue.ts';

/** Prefix of the worker names of queued runs. */
export const queueWorker = 'queue/';

export interface WorkEnv {
  readonly engine: EngineEnv;
  readonly completion: JobCompletion;
}

/** Milliseconds before the queue offers a run again that another worker holds, or that waits for its turn as a suspect. */
const heldMs = 1_000;

/** A job, and the agent of its run. */
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
      await env.completion.putBack(job, 'error', { delayMs: heldMs });
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
    const scope = scopeOfJob(parseShape(runJob, job.data, 'job'));
    if (await engine.isOpen(scope, job.id)) {
      await completion.putBack(job, 'held', { delayMs: heldMs });
    } else completion.done(job);
    return;
  }
  const outcome = await claimed.execute();
  if (outcome === 'ended') completion.done(job);
  else await completion.putBack(job, 'handed-over');
}
