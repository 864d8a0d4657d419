import { outputOfSnapshot } from '../protocol/snapshot-output.ts';
import type { Output } from '../protocol/turn.ts';
import type { AgentApi, ApiCallOptions, RunHandle } from './agent-api.ts';
import { describeOutput } from './describe.ts';
import { throwIfFailed } from './turn-error.ts';
import type { FailureOptions } from './types.ts';

/** What a handle asks its agent. */
type RunReads = Pick<AgentApi, 'watch' | 'wait' | 'steer' | 'abort' | 'getSnapshot'>;

/** The handle of a run. Its calls have the options of the caller that it belongs to, such as the owner. */
export function createRunHandle(agent: RunReads, id: string, caller: ApiCallOptions): RunHandle {
  const forCaller = <Options extends object>(options?: Options) => ({ ...caller, ...options });
  return {
    id,
    watch: (options) => agent.watch(id, forCaller(options)),
    wait: async ({ throwOnError = true, ...options }: FailureOptions = {}) => {
      const output: Output = outputOfSnapshot(await agent.wait(id, forCaller(options)));
      return describeOutput(throwOnError ? throwIfFailed(output) : output);
    },
    steer: (input, options) => agent.steer(id, input, forCaller(options)),
    async abort(options) {
      const given = forCaller(options);
      // If there is no such run, `wait` says so.
      return (await agent.abort(id, given)) ?? (await agent.wait(id, given)).status;
    },
    status: async (options) => (await agent.getSnapshot(id, forCaller(options)))?.status,
  };
}
