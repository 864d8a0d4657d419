import * as v from 'valibot';
import type { DispatchedRun } from '../../agent/spec/dispatcher.ts';
import type { Scope } from '../../store/contract/store.ts';

/** What a job says: which run somebody should work on. Ids only; all else is in the store. */
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

/** Whose run it is. */
export function scopeOfJob({ agent, owner }: Pick<RunJob, 'agent' | 'owner'>): Scope {
  return owner === undefined ? { agent } : { agent, owner };
}

/** What a worker can leave out when it looks for jobs: all of one version of an agent. */
export function groupOf({ agent, version }: Pick<RunJob, 'agent' | 'version'>): string {
  return version === undefined ? agent : `${agent}@${version}`;
}
