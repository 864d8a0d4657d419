import type { AgentTypes, SnapshotOf } from '../api/types.ts';
import { WaymarkError } from '../core/error.ts';
import type { AgentActions } from './agent-store.ts';
import { attempt, change, type FlowContext } from './flow-context.ts';
import { type StoreAgent, sessionDataOfSnapshot } from './session-data.ts';

/** The part of the actions that is about the past. */
export type TimelineActions<Types extends AgentTypes> = Pick<
  AgentActions<Types>,
  'goBack' | 'branch' | 'label' | 'look' | 'loadTimeline'
>;

/** What can be done with the past of a conversation. */
export function createTimelineActions<Types extends AgentTypes>(
  flowContext: FlowContext<Types>,
  load: AgentActions<Types>['load'],
): TimelineActions<Types> {
  const { agent, conversation, timeline } = flowContext;
  let looking: string | undefined;
  return {
    goBack: (snapshotId, options) =>
      attempt(flowContext, async () => {
        await agent.restore(snapshotId, options);
        const snapshot = await readSnapshot(agent, snapshotId);
        conversation.settle(sessionDataOfSnapshot(snapshot, conversation.sessionData));
        change(flowContext, { past: undefined, finishReason: snapshot.finishReason });
        timeline.update(snapshot.sessionId, 'all');
      }),

    branch: async (snapshotId, options) => {
      let sessionId: string | undefined;
      await attempt(flowContext, async () => {
        ({ sessionId } = await agent.fork(snapshotId, options));
        await load(sessionId);
      });
      return sessionId;
    },

    label: (snapshotId, label, options) =>
      attempt(flowContext, async () =>
        timeline.replace(await agent.label(snapshotId, label, options)),
      ),

    look: async (snapshotId) => {
      looking = snapshotId;
      if (snapshotId === undefined) change(flowContext, { past: undefined });
      else {
        await attempt(flowContext, async () => {
          const past = await agent.getSnapshot({ snapshotId });
          // A user who steps through the timeline sees the current snapshot, not the previous one.
          if (looking === snapshotId) change(flowContext, { past });
        });
      }
    },

    loadTimeline: async () => {
      await attempt(flowContext, () => timeline.want(conversation.view.sessionId));
    },
  };
}

/** A snapshot that must be there. */
export async function readSnapshot<Types extends AgentTypes>(
  agent: StoreAgent<Types>,
  snapshotId: string,
): Promise<SnapshotOf<Types>> {
  const snapshot = await agent.getSnapshot({ snapshotId });
  if (snapshot) return snapshot;
  throw new WaymarkError('NOT_FOUND', `There is no snapshot "${snapshotId}" any more.`);
}
