import type { Agent } from '../../agent/agent.ts';
import { internalsOf } from '../../agent/create-agent.ts';
import { resumeRun } from '../../agent/recovery.ts';
import { type AgentHost, fullStore } from '../../agent/spec.ts';
import { parseShape } from '../../protocol/parse.ts';
import type { RunSupport, TakenRun } from '../../session/store.ts';
import { crashOf, poisoned, recordCrash } from './crashes.ts';
import type { DeadLetters } from './dead-letters.ts';
import { runJob, scopeOfJob } from './job.ts';
import type { FetchedJob } from './queue.ts';
import type { Settler } from './settler.ts';

/** Under this name runs wait in the queue and are worked on from it. */
export const queueWorker = 'queue/';

export interface WorkEnv {
  readonly host: AgentHost;
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
 * Works on the runs of jobs, each until it has ended or somebody else has it, and tells the queue. They are taken over
 * together; a promise for each says when it is done with.
 */
export function workOn(env: WorkEnv, batch: readonly Assignment[]): readonly Promise<void>[] {
  const due = batch.filter(({ job }) => backoffOf(job) === 0);
  const taken = new Map(
    [...Map.groupBy(due, runsOf)].map(([runs, own]) => [runs, runs && takeAll(env, runs, own)]),
  );
  return batch.map(async (each) => {
    const { agent, job } = each;
    try {
      const runs = runsOf(each);
      if (runs === undefined) return await env.settler.putBack(job, 'not-mine', heldMs);
      const pause = backoffOf(job);
      if (pause > 0) return await env.settler.putBack(job, 'backoff', pause);
      const found = await taken.get(runs);
      await goOn(env, { ...each, runs, taken: found?.get(job.id) });
    } catch (error) {
      env.host.report?.(error, { agent: agent.name, runId: job.id });
      await env.settler.putBack(job, 'error', heldMs);
    }
  });
}

function runsOf({ agent }: Assignment): RunSupport | undefined {
  return fullStore(internalsOf(agent).spec)?.runs;
}

async function takeAll(
  { host }: WorkEnv,
  runs: RunSupport,
  batch: readonly Assignment[],
): Promise<ReadonlyMap<string, TakenRun>> {
  const taken = await runs.takeOver({
    agents: [...new Set(batch.map(({ agent }) => agent.name))],
    worker: `${queueWorker}${host.worker}`,
    ttl: host.ttl,
    limit: batch.length,
    runIds: batch.map(({ job }) => job.id),
    waitingAs: queueWorker,
  });
  return new Map(taken.map((each) => [each.run.runId, each]));
}

interface Work extends Assignment {
  readonly runs: RunSupport;
  readonly taken: TakenRun | undefined;
}

async function goOn(env: WorkEnv, { agent, runs, job, taken }: Work): Promise<void> {
  const { settler, deadLetters } = env;
  if (taken === undefined) {
    const data = parseShape(runJob, job.data, 'job');
    const open = await runs.getRun(scopeOfJob(data), job.id);
    if (open === undefined) settler.done(job);
    else await settler.putBack(job, 'held', heldMs);
    return;
  }
  const crashes = job.retryCount === 0 ? [] : await recordCrash(runs, taken, crashOf(job));
  const isPoison = crashes.length >= env.attempts;
  // Before its end is written: what is in the list but has not ended yet is found again, the other way round it is not.
  if (isPoison) await deadLetters.add(taken, crashes);
  const failure = isPoison ? { failure: poisoned(taken, crashes) } : {};
  const outcome = await resumeRun(agent, taken, failure);
  if (outcome === 'ended') settler.done(job);
  else await settler.putBack(job, 'handed-over');
}

/** How long a run waits that has just cost a worker: the first time not at all, then twice as long each time. */
function backoffOf(job: FetchedJob): number {
  if (job.retryCount < 2 || crashOf(job) === undefined) return 0;
  return Math.min(longestBackoffMs, 1_000 * 2 ** (job.retryCount - 2));
}
