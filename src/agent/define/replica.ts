import { on } from '../../session/policy.ts';
import type { Store } from '../../store/contract/store.ts';
import type { Agent } from '../contract/agent.ts';
import type { AgentSpec, PromptChanges, WorkspaceSpec } from '../contract/spec.ts';
import { storedState } from '../contract/stored-state.ts';
import { createEventLogs } from '../persistence/event-log.ts';
import { type AgentHost, createLiveRuns, createSessionCache } from '../persistence/host.ts';
import { turnStoreOf } from '../persistence/turn-store.ts';
import { type AgentInternals, createAgent } from './create-agent.ts';

/** A host for agents that work on a copy: nothing of theirs is dispatched, cached or reported with the app's own. */
export function replicaHost(host: AgentHost, report: AgentHost['report']): AgentHost {
  const { clock, ttl } = host;
  const { dispatcher: _, ...rest } = host;
  return {
    ...rest,
    cache: createSessionCache(64),
    live: createLiveRuns({ clock, ttl }),
    logs: createEventLogs(clock),
    report,
  };
}

/**
 * The same agent over another store, perhaps with other settings. It makes one snapshot for each turn, tells everything, and calls
 * no hook of the application, and does not touch the files of the original.
 */
export function replicaOf(
  { spec }: AgentInternals,
  {
    host,
    store,
    changes,
    workspace,
  }: {
    host: AgentHost;
    store: Store;
    changes?: PromptChanges | undefined;
    workspace: WorkspaceSpec | undefined;
  },
): Agent {
  const { onFinish: _, clientState: __, ...kept } = spec;
  const replica: AgentSpec = {
    ...kept,
    workspace,
    ...(changes && spec.withChanges?.(changes)),
    store,
    policy: on('turnEnd'),
    concurrency: 'reject',
    transform: {},
    ownTransform: {},
    titleOf: () => undefined,
  };
  const turnStore = turnStoreOf(store, { host, upgrade: (state) => storedState(replica, state) });
  return createAgent({ ...replica, turnStore }, host);
}
