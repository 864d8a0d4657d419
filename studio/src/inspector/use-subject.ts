import { useMemo } from 'react';
import type { Snapshot, State } from '../../../src/client/index.ts';
import { useAgentValue } from '../../../src/react/index.ts';
import { useSnapshot } from '../lib/use-snapshot.ts';
import { useWorkbench } from '../shell/workbench.tsx';

/** What the inspector is about: a snapshot, or the state as a running turn changes it. */
export interface Subject {
  /** Its metadata; absent while a turn runs, and before the first. */
  readonly snapshot: Snapshot | undefined;
  readonly isLive: boolean;
  readonly state: State | undefined;
  /** The state that the turn started from; `undefined` until it is read. */
  readonly before: State | undefined;
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
  const isNow = place.snapshot === undefined || place.snapshot === headId;
  const isLive = isNow && isRunning;
  const snapshotId = place.snapshot ?? headId;
  const snapshot = useMemo(
    () => timeline.find((each) => each.snapshotId === snapshotId),
    [timeline, snapshotId],
  );
  const past = useSnapshot(agent, isNow ? undefined : snapshotId, snapshot?.status);
  const beforeId = isLive ? headId : snapshot?.parentId;
  const parent = useSnapshot(agent, beforeId);
  // What has been erased is not shown on.
  if (session === 'gone')
    return { snapshot: undefined, isLive: false, state: undefined, before: undefined };
  return {
    snapshot: isLive ? undefined : snapshot,
    isLive,
    state: isNow ? live : past?.state,
    before: beforeId === undefined ? nothing : parent?.state,
  };
}

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
