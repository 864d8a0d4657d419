import { useEffect, useRef, useState } from 'react';
import type { RemoteAgent, SessionInfo } from '../../../src/client/index.ts';
import { type AgentStore, useAgentValue } from '../../../src/react/index.ts';
import { goTo, type Place } from '../lib/place.ts';
import { pulse } from '../lib/pulse.ts';
import { useSource } from '../lib/use-source.ts';

/** Keeps the address and the conversation at the same session, and the conversation up to date with what others do. */
export function useSession(
  store: AgentStore,
  agent: RemoteAgent,
  place: Place,
  /** Whether the agent's store keeps sessions; otherwise the conversation lives in this page only. */
  isKept: boolean,
): SessionInfo | 'gone' | undefined {
  const sessionId = useAgentValue(store, (view) => view.sessionId);
  const placed = useRef(place);
  placed.current = place;

  useEffect(() => {
    if (store.getView().sessionId !== place.session) void store.actions.load(place.session);
  }, [store, place.session]);

  useEffect(() => {
    const { session: known } = placed.current;
    const { phase } = store.getView();
    if (!isKept || sessionId === undefined || sessionId === known || phase === 'loading') return;
    goTo({ view: 'chat', agent: agent.name, session: sessionId }, { replace: known === undefined });
  }, [store, agent, sessionId, isKept]);

  useLooking(store, place.snapshot);
  const info = useSessionInfo(agent, isKept ? sessionId : undefined);
  useFollowing(store, info);
  return info;
}

/** Loads the selected snapshot; quick steps through the timeline load only the last one. */
function useLooking(store: AgentStore, snapshot: string | undefined): void {
  const head = useAgentValue(store, (view) => view.snapshotId);
  useEffect(() => {
    const wanted = snapshot === head ? undefined : snapshot;
    if (wanted === undefined) return void store.actions.view(undefined);
    const timer = setTimeout(() => void store.actions.view(wanted), 60);
    return () => clearTimeout(timer);
  }, [store, snapshot, head]);
}

/** The last known facts about a session. */
function useSessionInfo(
  agent: RemoteAgent,
  sessionId: string | undefined,
): SessionInfo | 'gone' | undefined {
  const { beat } = useSource(pulse);
  const [known, setKnown] = useState<{
    readonly id: string;
    readonly info: SessionInfo | 'gone';
  }>();
  // biome-ignore lint/correctness/useExhaustiveDependencies: every beat is a reason to look again
  useEffect(() => {
    if (sessionId === undefined) return;
    let isCurrent = true;
    agent.listSessions({ query: sessionId, limit: 20 }).then(
      ({ items }) => {
        if (!isCurrent) return;
        const found = items.find((each) => each.sessionId === sessionId);
        // A session that has not been seen yet may be about to begin.
        setKnown((before) =>
          found
            ? { id: sessionId, info: found }
            : before?.id === sessionId
              ? { id: sessionId, info: 'gone' }
              : before,
        );
      },
      () => {},
    );
    return () => {
      isCurrent = false;
    };
  }, [agent, sessionId, beat]);
  return known?.id === sessionId ? known?.info : undefined;
}

/** Other pages or processes may continue the session. */
function useFollowing(store: AgentStore, info: SessionInfo | 'gone' | undefined): void {
  const left = useRef<string>(undefined);
  const { returns } = useSource(pulse);
  useEffect(() => {
    if (info === undefined || info === 'gone') return;
    const { phase, snapshotId, sessionId, running } = store.getView();
    if (phase !== 'ready' || sessionId !== info.sessionId) {
      left.current = undefined;
      return;
    }
    // The user chose to stop watching a known run that is not followed.
    if (running !== undefined && running === info.running) left.current = running;
    const isNewRun = info.running !== undefined && info.running !== left.current;
    if (isNewRun || (info.running === undefined && info.headId !== snapshotId)) {
      void store.actions.refresh();
    }
  }, [store, info]);
  useEffect(() => {
    if (returns > 0) void store.actions.refresh();
  }, [store, returns]);
}
