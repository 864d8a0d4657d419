import type { Agent } from '../../agent/spec/agent.ts';
import type { RemoteAgent } from '../../client/remote-agent.ts';

/** An agent as the commands use it, in this process or on a server. */
export type AgentAccess = Pick<
  RemoteAgent,
  | 'name'
  | 'describe'
  | 'streamBidi'
  | 'getSnapshot'
  | 'listSnapshots'
  | 'getSession'
  | 'listSessions'
  | 'deleteSession'
  | 'watch'
  | 'abort'
  | 'listDeadRuns'
  | 'retryRun'
  | 'restore'
  | 'fork'
  | 'diff'
>;

/** An agent of this process, on behalf of one owner. */
export function localAgent(agent: Agent, owner: string | undefined): AgentAccess {
  const whose = owner === undefined ? {} : { owner };
  const { name, description, metadata } = agent;
  return {
    name,
    describe: async () => {
      const { stateSchema: _, ...known } = metadata;
      return { name, ...(description !== undefined && { description }), metadata: known };
    },
    streamBidi: ({ onReset: _, ...options } = {}) => agent.streamBidi({ ...options, ...whose }),
    getSnapshot: (lookup, options) => agent.getSnapshot(lookup, { ...options, ...whose }),
    listSnapshots: (id, options) => agent.listSnapshots(id, { ...options, ...whose }),
    getSession: (id, options) => agent.getSession(id, { ...options, ...whose }),
    listSessions: (options) => agent.listSessions({ ...options, ...whose }),
    deleteSession: (id, options) => agent.deleteSession(id, { ...options, ...whose }),
    watch: (id, options) => agent.watch(id, { ...options, ...whose }),
    abort: (id, options) => agent.abort(id, { ...options, ...whose }),
    listDeadRuns: (options) => agent.listDeadRuns({ ...options, ...whose }),
    retryRun: (id, options) => agent.retryRun(id, { ...options, ...whose }),
    restore: (id, options) => agent.restore(id, { ...options, ...whose }),
    fork: (id, options) => agent.fork(id, { ...options, ...whose }),
    diff: (from, to, options) => agent.diff(from, to, { ...options, ...whose }),
  };
}
