import type { Agent } from '../../agent/spec/agent.ts';
import type { RemoteAgent } from '../../client/remote-agent.ts';
import type { RunInfo } from '../../protocol/run.ts';
import type { Page, SessionInfo } from '../../protocol/session.ts';
import type { SnapshotStore, Store } from '../../store/contract/store.ts';

/** An open run, with the worker that holds it where that is known. */
export interface RunWithWorker extends RunInfo {
  readonly worker?: string;
}

/** An agent as the commands use it, in this process or on a server. */
export interface AgentAccess
  extends Pick<
    RemoteAgent,
    | 'name'
    | 'describe'
    | 'streamBidi'
    | 'getSnapshot'
    | 'listSnapshots'
    | 'getSession'
    | 'listSessions'
    | 'listInterrupts'
    | 'watch'
    | 'abort'
    | 'listDeadRuns'
    | 'retryRun'
    | 'restore'
    | 'fork'
    | 'label'
    | 'diff'
  > {
  listRuns(): Promise<Page<RunWithWorker>>;
  /** `null` removes the title. */
  rename(sessionId: string, title: string | null): Promise<SessionInfo>;
}

/** An agent on a server. */
export function remoteAgent(agent: RemoteAgent): AgentAccess {
  return Object.assign(agent, {
    rename: async (sessionId: string, title: string | null) =>
      await agent.updateSession(sessionId, { title }),
  });
}

/** An agent of this process, on behalf of one owner. `store` is the app's. */
export function localAgent(
  agent: Agent,
  owner: string | undefined,
  store: Store | SnapshotStore | undefined,
): AgentAccess {
  const whose = owner === undefined ? {} : { owner };
  const { name, description, metadata } = agent;
  return {
    name,
    describe: async () => {
      const { stateSchema: _, ...known } = metadata;
      return { name, ...(description !== undefined && { description }), metadata: known };
    },
    streamBidi: ({ onReset: _, artifacts: __, ...options } = {}) =>
      agent.streamBidi({ ...options, ...whose }),
    getSnapshot: (lookup, options) => agent.getSnapshot(lookup, { ...options, ...whose }),
    listSnapshots: (id, options) => agent.listSnapshots(id, { ...options, ...whose }),
    getSession: (id, options) => agent.getSession(id, { ...options, ...whose }),
    listSessions: (options) => agent.listSessions({ ...options, ...whose }),
    listInterrupts: (options) => agent.listInterrupts({ ...options, ...whose }),
    rename: async (id, title) => await agent.updateSession(id, { title }, whose),
    watch: (id, options) => agent.watch(id, { ...options, ...whose }),
    abort: (id, options) => agent.abort(id, { ...options, ...whose }),
    listRuns: async () => {
      const { items } = await agent.listRuns(whose);
      return { items: await withWorkers(items, { agent: name, ...whose }, store) };
    },
    listDeadRuns: (options) => agent.listDeadRuns({ ...options, ...whose }),
    retryRun: (id, options) => agent.retryRun(id, { ...options, ...whose }),
    restore: (id, options) => agent.restore(id, { ...options, ...whose }),
    fork: (id, options) => agent.fork(id, { ...options, ...whose }),
    label: (id, label, options) => agent.label(id, label, { ...options, ...whose }),
    diff: (from, to, options) => agent.diff(from, to, { ...options, ...whose }),
  };
}

// `Agent.listRuns` does not include the worker, so it is read from the app's store. It is missing for other stores.
async function withWorkers(
  runs: readonly RunInfo[],
  scope: { readonly agent: string; readonly owner?: string },
  store: Store | SnapshotStore | undefined,
): Promise<readonly RunWithWorker[]> {
  if (runs.length === 0 || store === undefined || !('runs' in store)) return runs;
  const records = (await store.runs?.listRuns(scope)) ?? [];
  const workers = new Map(records.map(({ runId, worker }) => [runId, worker]));
  return runs.map((run) => {
    const worker = workers.get(run.snapshotId);
    return worker === undefined ? run : { ...run, worker };
  });
}
