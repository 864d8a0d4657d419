import type { Agent } from '../../agent/agent.ts';
import { internalsOf } from '../../agent/create-agent.ts';
import { resumeRun } from '../../agent/recovery.ts';
import { type AgentHost, fullStore } from '../../agent/spec.ts';
import { parseShape } from '../../protocol/parse.ts';
import type { RunSupport } from '../../session/store.ts';
import { crashOf, poisoned, recordCrash } from './crashes.ts';
import type { DeadLetters } from './dead-letters.ts';
import { type RunJob, runJob, scopeOfJob } from './job.ts';
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

/** Works on the run of a job until it has ended or somebody else has it, and tells the queue. */
export async function workOn(env: WorkEnv, agent: Agent, job: FetchedJob): Promise<void> {
  const { host, settler } = env;
  try {
    const data = parseShape(runJob, job.data, 'job');
    const runs = fullStore(internalsOf(agent).spec)?.runs;
    if (runs === undefined) return await settler.putBack(job, 'not-mine', heldMs);
    const crash = crashOf(job);
    const pause = await backoffOf(job, crash);
    if (pause > 0) return await settler.putBack(job, 'backoff', pause);
    await takeUp(env, { agent, runs, job, data, crash });
  } catch (error) {
    host.report?.(error, { agent: agent.name, runId: job.id });
    await settler.putBack(job, 'error', heldMs);
  }
}

interface Work {
  readonly agent: Agent;
  readonly runs: RunSupport;
  readonly job: FetchedJob;
  readonly data: RunJob;
  readonly crash: string | undefined;
}

async function takeUp(env: WorkEnv, { agent, runs, job, data, crash }: Work): Promise<void> {
  const { host, settler, deadLetters } = env;
  const [taken] = await runs.takeOver({
    agents: [agent.name],
    worker: `${queueWorker}${host.worker}`,
    ttl: host.ttl,
    limit: 1,
    runId: job.id,
    waitingAs: queueWorker,
  });
  if (taken === undefined) {
    const open = await runs.getRun(scopeOfJob(data), job.id);
    if (open === undefined) settler.done(job);
    else await settler.putBack(job, 'held', heldMs);
    return;
  }
  const crashes = job.retryCount === 0 ? [] : await recordCrash(runs, taken, crash);
  const isPoison = crashes.length >= env.attempts;
  // Before its end is written: what is in the list but has not ended yet is found again, the other way round it is not.
  if (isPoison) await deadLetters.add(taken, crashes);
  const failure = isPoison ? { failure: poisoned(taken, crashes) } : {};
  const outcome = await resumeRun(agent, taken, failure);
  if (outcome === 'ended') settler.done(job);
  else await settler.putBack(job, 'handed-over');
}

/** How long a run waits that has just cost a worker: the first time not at all, then twice as long each time. */
async function backoffOf(job: FetchedJob, crash: string | undefined): Promise<number> {
  if (crash === undefined || job.retryCount < 2) return 0;
  return Math.min(longestBackoffMs, 1_000 * 2 ** (job.retryCount - 2));
}
