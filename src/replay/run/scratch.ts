import { type AgentInternals, internalsOf, replicas } from '../../agent/define/create-agent.ts';
import { replicaHost, replicaOf } from '../../agent/define/replica.ts';
import type { PromptChanges } from '../../agent/spec/spec.ts';
import type { App } from '../../app.ts';
import { toolReplay } from '../../generate/hooks.ts';
import { fromPlainState, type SessionState } from '../../session/session-state.ts';
import { memoryStore } from '../../store/memory/memory-store.ts';
import type { RecordedSession } from '../recording/recorded-session.ts';
import { type ReplayedTurn, replayedTurn } from '../recording/scripted-model-from.ts';
import type { RecordedTools } from './recorded-tools.ts';

/** A copy of one session in memory, with the agent that continues it. The store that it came from is not touched. */
export interface Scratch {
  readonly agent: AgentInternals;
  /** The state of a snapshot, also of a failed turn. */
  stateAt(snapshotId: string): Promise<SessionState | undefined>;
  /** A copy of a snapshot in a separate session. */
  fork(snapshotId: string): Promise<string>;
  /** Runs a turn in the place of a recorded one. */
  inside<Value>(replayed: ReplayedTurn, tools: RecordedTools, fn: () => Value): Value;
}

/** Copies a session. */
export async function createScratch(
  app: App,
  { session, document }: RecordedSession,
  changes: PromptChanges,
): Promise<Scratch> {
  const store = memoryStore();
  const original = internalsOf(app.agent(session.agent));
  const scope = { agent: session.agent };
  // Failures of the replay are in its report.
  const host = replicaHost(original.host, () => {});
  const agent = internalsOf(replicaOf(original, { host, store, changes }));
  await store.maintenance?.importSession(scope, document);
  const others = new Map<AgentInternals, AgentInternals>();
  const replicaFor = (other: AgentInternals): AgentInternals => {
    const replica = others.get(other) ?? internalsOf(replicaOf(other, { host, store }));
    others.set(other, replica);
    return replica;
  };
  return {
    agent,
    async stateAt(snapshotId) {
      const loaded = await store.runs?.load(scope, { snapshotId }).catch(() => undefined);
      if (loaded !== undefined) return loaded.state;
      const { state } = (await store.getSnapshot(scope, { snapshotId })) ?? {};
      return state && fromPlainState(state);
    },
    async fork(snapshotId) {
      const target = { sessionId: host.newId(), snapshotId: host.newId() };
      await store.timeline?.fork(scope, snapshotId, target);
      return target.snapshotId;
    },
    inside: (replayed, tools, fn) =>
      replicas.run(replicaFor, () => toolReplay.run(tools, () => replayedTurn.run(replayed, fn))),
  };
}
