import type { Agent } from '../../agent/contract/agent.ts';
import { internalsOf } from '../../agent/define/create-agent.ts';
import type { RemoteAgent } from '../../client/remote-agent.ts';
import { defined } from '../../core/json/json.ts';
import { skillInfoOf } from '../../generate/skill/skills.ts';
import type { SkillInfo } from '../../protocol/requests.ts';
import type { RunInfo } from '../../protocol/run.ts';
import type { Page } from '../../protocol/session.ts';
import type { SnapshotStore, Store } from '../../store/contract/store.ts';

/** An open run, with the worker that holds it where that is known. */
export interface RunWithWorker extends RunInfo {
  readonly worker?: string;
}

/** The calls of an agent that the commands use, with the place of their options. */
const calls = {
  getSnapshot: 1,
  listSnapshots: 1,
  getSession: 1,
  listSessions: 0,
  listInterrupts: 0,
  updateSession: 2,
  watch: 1,
  abort: 1,
  listDeadRuns: 0,
  retryRun: 1,
  restore: 1,
  planUndo: 1,
  fork: 1,
  label: 2,
  diff: 2,
  listFiles: 1,
} as const;

/** An agent as the commands use it, in this process or on a server. */
export interface AgentAccess
  extends Pick<RemoteAgent, 'name' | 'describe' | 'streamBidi' | keyof typeof calls> {
  listRuns(): Promise<Page<RunWithWorker>>;
  /** Its skills, of which a server tells with `describe`. */
  skills?(): Promise<readonly SkillInfo[]>;
  /** Absent for an agent on a server. */
  checkout?(snapshotId: string, folder: string): ReturnType<Agent['checkout']>;
}

/** An agent of this process, on behalf of one owner. `store` is the app's. */
export function localAgent(
  agent: Agent,
  owner: string | undefined,
  store: Store | SnapshotStore | undefined,
): AgentAccess {
  const whose = defined({ owner });
  const { name, description, metadata } = agent;
  const owned = Object.entries(calls).map(([call, place]) => [
    call,
    (...given: unknown[]) => {
      const args = given.slice(0, place);
      const options = { ...(given[place] as object | undefined), ...whose };
      return (agent[call as keyof typeof calls] as (...args: unknown[]) => unknown)(
        ...args,
        options,
      );
    },
  ]);
  return {
    ...(Object.fromEntries(owned) as Pick<AgentAccess, keyof typeof calls>),
    name,
    describe: async () => {
      const { stateSchema: _, ...known } = metadata;
      return { name, ...defined({ description }), metadata: known };
    },
    skills: async () => ((await internalsOf(agent).spec.skills?.({})) ?? []).map(skillInfoOf),
    streamBidi: ({ onReset: _, artifacts: __, ...options } = {}) =>
      agent.streamBidi({ ...options, ...whose }),
    checkout: (snapshotId, folder) => agent.checkout(snapshotId, folder, whose),
    listRuns: async () => {
      const { items } = await agent.listRuns(whose);
      return { items: await withWorkers(items, { agent: name, ...whose }, store) };
    },
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
