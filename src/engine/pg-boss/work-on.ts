import type { Agent } from '../../agent/agent.ts';
import { parseShape } from '../../protocol/parse.ts';
import type { ClaimedRun, EngineEnv } from '../engine.ts';
import { crashOf, hasJustCrashed, poisoned, recordCrash } from './crashes.ts';
import type { DeadLetters } from './dead-letters.ts';
import { runJob, scopeOfJob } from './job.ts';
import type { FetchedJob } from './queue.ts';
import type { Settler } from './settler.ts';

/** Under this name runs wait in the queue and are worked on from it. */
export const queueWorker = 'queue/';

export interface WorkEnv {
  readonly engine: EngineEnv;
  readonly settler: Settler;
  readonly deadLetters: DeadLetters;
  /** Workers that a run may cost. */
  readonly attempts: number;
}

/** Milliseconds after which somebody looks again at a run that is still held. */
const heldMs = 1_000;
/** Longest pause before a run that has cost workers is tried again. */
const longestBackoffMs = 60_000;

/** A job, and the agent that works on its run. */
export interface Assignment {
  readonly agent: Agent;
  readonly job: FetchedJob;
}

/**
 * Works on the runs of jobs, each until it has ended or somebody else has it, and tells the queue. They are claimed
 * together; a promise for each says when it is done with.
 */
export function workOn(env: WorkEnv, batch: readonly Assignment[]): readonly Promise<void>[] {
  const due = batch.filter(({ job }) => backoffOf(job) === 0);
  const claiming = claimAll(env, due);
  // Each of them hears of it below; without any of them nobody would.
  claiming.catch(() => {});
  return batch.map(async ({ agent, job }) => {
    const toNote: ToNote = { crash: crashOf(job) };
    try {
      const delayMs = backoffOf(job);
      if (delayMs > 0) return await env.settler.putBack(job, 'backoff', { ...toNote, delayMs });
      await goOn(env, job, toNote, (await claiming).get(job.id));
    } catch (error) {
      env.engine.report(error, { agent: agent.name, runId: job.id });
      await env.settler.putBack(job, 'error', { ...toNote, delayMs: heldMs });
    }
  });
}

/** How a worker was lost with the run, until it is noted there. */
interface ToNote {
  crash: string | undefined;
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
  { engine, settler, deadLetters, attempts }: WorkEnv,
  job: FetchedJob,
  toNote: ToNote,
  claimed: ClaimedRun | undefined,
): Promise<void> {
  if (claimed === undefined) {
    const scope = scopeOfJob(parseShape(runJob, job.data, 'job'));
    if (await engine.isOpen(scope, job.id)) {
      await settler.putBack(job, 'held', { ...toNote, delayMs: heldMs });
    } else settler.done(job);
    return;
  }
  const crashes = job.retryCount === 0 ? [] : await recordCrash(claimed, toNote.crash);
  toNote.crash = undefined;
  const isPoison = crashes.length >= attempts;
  // Before its end is written: what is in the list but has not ended yet is found again, the other way round it is not.
  if (isPoison) await deadLetters.add(claimed, crashes);
  const outcome = await claimed.goOn(isPoison ? { failure: poisoned(claimed, crashes) } : {});
  if (outcome === 'ended') settler.done(job);
  else await settler.putBack(job, 'handed-over');
}

/** How long a run waits that has just cost a worker: the first time not at all, then twice as long each time. */
function backoffOf(job: FetchedJob): number {
  if (job.retryCount < 2 || !hasJustCrashed(job)) return 0;
  // A pause is a retry of the queue, too.
  const pauses = Math.floor(job.retryCount / 2) - 1;
  return Math.min(longestBackoffMs, 1_000 * 2 ** pauses);
}
