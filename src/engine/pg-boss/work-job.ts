import type { Agent } from '../../agent/spec/agent.ts';
import { parseShape } from '../../protocol/parse.ts';
import type { ClaimedRun, EngineEnv } from '../engine.ts';
import { runJob, scopeOfJob } from './job.ts';
import type { JobCompletion } from './job-completion.ts';
import type { FetchedJob } from './queue.ts';

/** Under this name runs wait in the queue and are worked on from it. */
export const queueWorker = 'queue/';

export interface WorkEnv {
  readonly engine: EngineEnv;
  readonly completion: JobCompletion;
}

/** Milliseconds after which somebody looks again at a run that is still held, or has to wait for its turn as a suspect. */
const heldMs = 1_000;

/** A job, and the agent that works on its run. */
export interface Assignment {
  readonly agent: Agent;
  readonly job: FetchedJob;
}

/**
 * Works on the runs of jobs, each until it has ended or somebody else has it, and tells the queue. They are claimed
 * together; a promise for each says when it is done with.
 */
export function workJob(env: WorkEnv, batch: readonly Assignment[]): readonly Promise<void>[] {
  const claiming = claimAll(env, batch);
  // Each of them hears of it below; without any of them nobody would.
  claiming.catch(() => {});
  return batch.map(async ({ agent, job }) => {
    try {
      await goOn(env, job, (await claiming).get(job.id));
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

async function goOn(
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
  const outcome = await claimed.goOn();
  if (outcome === 'ended') completion.done(job);
  else await completion.putBack(job, 'handed-over');
}
