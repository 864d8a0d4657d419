import { useMemo } from 'react';
import type { Snapshot, State } from '../../../src/client/index.ts';
import { useAgentValue } from '../../../src/react/index.ts';
import { latestFailure } from '../lib/failed-turns.ts';
import { knownSnapshot } from '../lib/known-snapshot.ts';
import { alignStates, lastPage, type PagedState } from '../lib/message-pages.ts';
import { useSnapshot } from '../lib/use-snapshot.ts';
import { useWorkbench } from '../shell/workbench.tsx';

/** The subject of the inspector: a snapshot, or the state as a running turn changes it. */
export interface Subject {
  /** Its metadata; absent while a turn runs, and before the first. */
  readonly snapshot: Snapshot | undefined;
  readonly isLive: boolean;
  /** With its last messages, as `before` has them. */
  readonly state: State | undefined;
  /** The state that the turn started from; `undefined` until it is read. */
  readonly before: State | undefined;
  /** The position of the first message of the state. */
  readonly from: number;
  /** How many messages the state has in all. */
  readonly messageCount: number;
}

const nothing: State = {};

/** The selected snapshot, or the current state. */
export function useSubject(): Subject {
  const { agent, store, place, session } = useWorkbench();
  const timeline = useAgentValue(store, (view) => view.timeline);
  const headId = useAgentValue(store, (view) => view.snapshotId);
  const isRunning = useAgentValue(
    store,
    (view) => view.phase !== 'ready' && view.phase !== 'loading',
  );
  const live = useLiveState();
  // A turn that failed last is what one wants to look into.
  const failedId = useMemo(() => latestFailure(timeline, headId)?.snapshotId, [timeline, headId]);
  const selectedId = place.snapshot ?? (isRunning ? undefined : failedId);
  const isNow = selectedId === undefined || selectedId === headId;
  const isLive = isNow && isRunning;
  const snapshotId = selectedId ?? headId;
  const viewed = useAgentValue(store, (view) => view.past);
  const snapshot = useMemo(
    () => knownSnapshot({ timeline, past: viewed }, snapshotId),
    [timeline, viewed, snapshotId],
  );
  const past = useSnapshot(agent, isNow ? undefined : snapshotId, {
    version: snapshot?.status,
    page: lastPage.messages,
  });
  const beforeId = isLive ? headId : snapshot?.parentId;
  const parent = useSnapshot(agent, beforeId, { page: lastPage.messages });
  const earlier = useAgentValue(store, (view) => view.earlier);
  // A deleted session is no longer shown.
  if (session === 'gone') return gone;
  const shown = isNow ? { state: live, from: earlier } : pagedState(past);
  const [state, before] = alignStates(
    shown,
    beforeId === undefined ? { state: nothing, from: 0 } : pagedState(parent),
  );
  return {
    snapshot: isLive ? undefined : snapshot,
    isLive,
    state,
    before,
    from: shown.from + (shown.state?.messages?.length ?? 0) - (state?.messages?.length ?? 0),
    messageCount: shown.from + (shown.state?.messages?.length ?? 0),
  };
}

function pagedState(snapshot: Snapshot | undefined): PagedState {
  return { state: snapshot?.state, from: snapshot?.messageRange?.from ?? 0 };
}

const gone: Subject = {
  snapshot: undefined,
  isLive: false,
  state: undefined,
  before: undefined,
  from: 0,
  messageCount: 0,
};

/** The state as it is known here, with what a running turn has changed. */
function useLiveState(): State {
  const { store } = useWorkbench();
  const custom = useAgentValue(store, (view) => view.custom);
  const artifacts = useAgentValue(store, (view) => view.artifacts);
  const messages = useAgentValue(store, (view) => view.transcript);
  return useMemo(
    () => ({
      messages: [...messages],
      ...(custom !== undefined && { custom }),
      artifacts: [...artifacts],
    }),
    [messages, custom, artifacts],
  );
}
