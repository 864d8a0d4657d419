import type { AgentApi } from '../api/agent-api.ts';
import { snapshotIdOf } from '../api/turn-values.ts';
import type { AgentTypes, SnapshotOf } from '../api/types.ts';
import { WaymarkError } from '../core/error.ts';
import type { MessageOptions } from '../protocol/message-page.ts';
import type { UndoPlan } from '../protocol/undo.ts';
import type { AgentActions } from './agent-store.ts';
import { attempt, change, type FlowContext } from './flow-context.ts';
import { sessionDataOf } from './session-data.ts';

export function createTimelineActions<Types extends AgentTypes>(
  flowContext: FlowContext<Types>,
  load: AgentActions<Types>['load'],
): Pick<
  AgentActions<Types>,
  'restore' | 'planUndo' | 'fork' | 'label' | 'view' | 'loadTimeline' | 'loadEarlierSnapshots'
> {
  const { agent, conversation, timeline, page } = flowContext;
  let viewing: unknown;
  return {
    restore: (ref, options) =>
      attempt(flowContext, async () => {
        const { snapshotId } = await agent.restore(ref, options);
        const snapshot = await readSnapshot(agent, snapshotId, page);
        conversation.settle(sessionDataOf(snapshot, conversation.sessionData));
        change(flowContext, { past: undefined, finishReason: snapshot.finishReason });
        timeline.update(snapshot.sessionId, 'all');
      }),

    planUndo: async (snapshot) => {
      let plan: UndoPlan | undefined;
      await attempt(flowContext, async () => {
        plan = await agent.planUndo(snapshot);
      });
      return plan;
    },

    fork: async (snapshot, options) => {
      let sessionId: string | undefined;
      await attempt(flowContext, async () => {
        ({ sessionId } = await agent.fork(snapshot, options));
        await load(sessionId);
      });
      return sessionId;
    },

    label: (snapshot, label, options) =>
      attempt(flowContext, async () =>
        timeline.replace(await agent.label(snapshot, label, options)),
      ),

    view: async (snapshot) => {
      viewing = snapshot;
      if (snapshot === undefined) change(flowContext, { past: undefined });
      else {
        await attempt(flowContext, async () => {
          const past = await agent.getSnapshot({ snapshotId: snapshotIdOf(snapshot) }, page);
          // A user who steps through the timeline sees the current snapshot, not the previous one.
          if (viewing === snapshot) change(flowContext, { past });
        });
      }
    },

    loadTimeline: async () => {
      await attempt(flowContext, () => timeline.want(conversation.view.sessionId));
    },

    loadEarlierSnapshots: async () => {
      await attempt(flowContext, () => timeline.readEarlier(conversation.view.sessionId));
    },
  };
}

export async function readSnapshot<Types extends AgentTypes>(
  agent: AgentApi<Types>,
  snapshotId: string,
  page: MessageOptions,
): Promise<SnapshotOf<Types>> {
  const snapshot = await agent.getSnapshot({ snapshotId }, page);
  if (snapshot) return snapshot;
  throw new WaymarkError('NOT_FOUND', `No snapshot "${snapshotId}".`);
}
