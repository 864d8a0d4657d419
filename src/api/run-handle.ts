import { outputOfSnapshot } from '../protocol/snapshot-output.ts';
import type { Output } from '../protocol/turn.ts';
import type { AgentApi, RunHandle } from './agent-api.ts';
import { describeOutput } from './describe.ts';
import { throwIfFailed } from './turn-error.ts';
import type { FailureOptions } from './types.ts';

/** What a handle asks its agent. */
type RunReads = Pick<AgentApi, 'watch' | 'wait' | 'steer' | 'abort' | 'getSnapshot'>;

/** The handle of a run. */
export function createRunHandle(agent: RunReads, id: string): RunHandle {
  return {
    id,
    watch: (options) => agent.watch(id, options),
    wait: async ({ throwOnError = true, ...options }: FailureOptions = {}) => {
      const output: Output = outputOfSnapshot(await agent.wait(id, options));
      return describeOutput(throwOnError ? throwIfFailed(output) : output);
    },
    steer: (input, options) => agent.steer(id, input, options),
    abort: (options) => agent.abort(id, options),
    status: async (options) => (await agent.getSnapshot(id, options))?.status,
  };
}
