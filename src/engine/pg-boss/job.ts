import * as v from 'valibot';
import type { DispatchedRun } from '../../agent/spec/dispatcher.ts';
import type { Scope } from '../../store/contract/store.ts';

/** The payload of a job: which run to execute. Only ids; everything else is in the store. */
export const runJob = v.object({
  agent: v.string(),
  sessionId: v.string(),
  owner: v.optional(v.string()),
  version: v.optional(v.string()),
});
export type RunJob = v.InferOutput<typeof runJob>;

/** The job of a run. */
export function toRunJob({ scope, sessionId, version }: DispatchedRun): RunJob {
  return {
    agent: scope.agent,
    sessionId,
    ...(scope.owner !== undefined && { owner: scope.owner }),
    ...(version !== undefined && { version }),
  };
}

/** The scope of the job's run. */
export function scopeOfJob({ agent, owner }: Pick<RunJob, 'agent' | 'owner'>): Scope {
  return owner === undefined ? { agent } : { agent, owner };
}

/** The job group of an agent version; a worker can ignore whole groups when it fetches jobs. */
export function groupOf({ agent, version }: Pick<RunJob, 'agent' | 'version'>): string {
  return version === undefined ? agent : `${agent}@${version}`;
}
