import { type ReactNode, useCallback, useDeferredValue, useEffect, useMemo } from 'react';
import type { Message, Part, Snapshot } from '../../../src/client/index.ts';
import { useAgentValue } from '../../../src/react/index.ts';
import { latestFailure } from '../lib/failed-turns.ts';
import { pulse } from '../lib/pulse.ts';
import { type ToolSpan, toolTimes } from '../lib/span-tree.ts';
import { openTurn } from '../lib/turns.ts';
import { useSource } from '../lib/use-source.ts';
import { useTurns } from '../lib/use-turns.ts';
import { RerunBar } from '../rerun/rerun-bar.tsx';
import { useWorkbench } from '../shell/workbench.tsx';
import { Empty } from '../ui/empty.tsx';
import { CompareView } from './compare-view.tsx';
import { Composer } from './composer.tsx';
import { ConversationHeader } from './conversation-header.tsx';
import { FailedTurn, SnapshotFault } from './failed-turn.tsx';
import { Interrupts } from './interrupts.tsx';
import { ErrorNote, RunningNote } from './notes.tsx';
import { PastBar } from './past-bar.tsx';
import { SubAgents } from './sub-agents.tsx';
import { SummaryNote } from './summary-note.tsx';
import { TurnView } from './turn-view.tsx';
import { useEarlier } from './use-earlier.ts';
import { usePastPages } from './use-past-pages.ts';
import { useStickToEnd } from './use-stick-to-end.ts';
import { Welcome } from './welcome.tsx';

/** The conversation: as it is, as it was, or compared with how it was. */
export function Conversation(): ReactNode {
  const { session, place, info } = useWorkbench();
  const { online } = useSource(pulse);
  return (
    <main className="conversation" aria-label={`Conversation with ${info.name}`}>
      <ConversationHeader />
      <RerunBar />
      {session === 'gone' ? (
        <Gone />
      ) : place.base === undefined ? (
        <>
          <PastBar />
          <Turns />
        </>
      ) : (
        <CompareView base={place.base} />
      )}
      <Composer isOffline={online === false} />
    </main>
  );
}

function Turns(): ReactNode {
  const { store, agent, place, spans, info, commands } = useWorkbench();
  const now = useAgentValue(store, (view) => view.transcript);
  const earlier = useAgentValue(store, (view) => view.earlier);
  const viewed = useAgentValue(store, (view) => view.past);
  const headId = useAgentValue(store, (view) => view.snapshotId);
  const wantsPast = place.snapshot !== undefined && place.snapshot !== headId;
  const wanted = useMemo(
    () => ({ isPast: wantsPast, past: wantsPast ? viewed : undefined }),
    [wantsPast, viewed],
  );
  // Another snapshot renders all turns again. This happens in small tasks, after the page has shown the reaction to the key or click.
  const { isPast, past } = useDeferredValue(wanted);
  const pastPages = usePastPages(agent, past);
  const { messages, from, loadEarlier } = past
    ? pastPages
    : { messages: now, from: earlier, loadEarlier: store.actions.loadEarlier };
  const times = useMemo(() => toolTimes(spans ?? []), [spans]);
  if (messages.length === 0 && !isPast) return <Beginning />;
  return (
    <TurnList
      key={past?.snapshotId ?? 'now'}
      messages={messages}
      from={from}
      loadEarlier={loadEarlier}
      isPast={isPast}
      past={past}
      times={times}
      agentName={info.name}
      commands={commands}
    />
  );
}

function TurnList({
  messages,
  from,
  loadEarlier,
  isPast,
  past,
  times,
  agentName,
  commands,
}: {
  readonly messages: readonly Message[];
  readonly from: number;
  readonly loadEarlier: () => Promise<void>;
  readonly isPast: boolean;
  readonly past: Snapshot | undefined;
  readonly times: ReadonlyMap<string, ToolSpan>;
  readonly agentName: string;
  readonly commands: ReturnType<typeof useWorkbench>['commands'];
}): ReactNode {
  const { store } = useWorkbench();
  const headId = useAgentValue(store, (view) => view.snapshotId);
  const timeline = useAgentValue(store, (view) => view.timeline);
  const isReady = useAgentValue(store, (view) => view.phase === 'ready');
  const snapshots = useMemo(
    () => new Map(timeline.map((each) => [each.snapshotId, each])),
    [timeline],
  );
  const turns = useTurns(messages, from);
  const hasEarlier = useAgentValue(store, (view) => view.hasEarlierSnapshots);
  const { first, earlier, showEarlier } = useEarlier(turns.length, from, loadEarlier);
  const topId = turns[first]?.snapshotId;
  // The turns that are shown need their snapshots.
  const needsEarlier =
    !isPast && hasEarlier && timeline.length > 0 && topId !== undefined && !snapshots.has(topId);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each part that has come is a reason to look again
  useEffect(() => {
    if (needsEarlier) void store.actions.loadEarlierSnapshots();
  }, [store, needsEarlier, timeline]);
  const { scroller, content } = useStickToEnd();
  const resend = useResend(commands);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section className="scroller" ref={scroller} aria-label="Messages" tabIndex={0}>
      <div ref={content} className="turns-frame">
        {(first > 0 || from > 0) && (
          <button ref={earlier} type="button" className="text-button earlier" onClick={showEarlier}>
            {from > 0
              ? `Show earlier turns (${from.toLocaleString()} more messages)`
              : `Show earlier turns (${first.toLocaleString()})`}
          </button>
        )}
        <SummaryNote messages={messages} />
        <ol className="turns" data-past={isPast || undefined}>
          {turns.slice(first).map((turn) => (
            <TurnView
              key={turn.messages[0]?.index}
              turn={turn}
              snapshot={turn.snapshotId === undefined ? undefined : snapshots.get(turn.snapshotId)}
              isLive={!isReady && turn.snapshotId === undefined}
              isHead={turn.snapshotId === headId}
              agentName={agentName}
              toolTimes={times}
              commands={commands}
              onResend={isReady ? resend : undefined}
            />
          ))}
        </ol>
        {!isPast && (
          <>
            <Interrupts />
            <SubAgents />
            <RunningNote />
            <ErrorNote />
            <FailedTurn />
          </>
        )}
        {past && <PastFault past={past} />}
      </div>
    </section>
  );
}

/** Why the displayed snapshot failed. */
function PastFault({ past }: { readonly past: Snapshot }): ReactNode {
  const [asked] = openTurn(past.state?.messages ?? []);
  return <SnapshotFault snapshot={past} asked={asked} />;
}

/** Sends something else in place of a message; the same function for all messages, so that they need not be drawn again. */
function useResend(
  commands: ReturnType<typeof useWorkbench>['commands'],
): (index: number, content: Part[]) => void {
  return useCallback((index, content) => void commands.resend(index, content), [commands]);
}

function Beginning(): ReactNode {
  const { store } = useWorkbench();
  const isLoading = useAgentValue(store, (view) => view.phase === 'loading');
  // A session whose first turn failed shows that turn instead.
  const isNew = useAgentValue(
    store,
    (view) => latestFailure(view.timeline, view.snapshotId) === undefined,
  );
  return (
    <div className="scroller">
      {isLoading ? (
        <p className="quiet loading">Loading the session…</p>
      ) : isNew ? (
        <Welcome />
      ) : null}
      <div className="turns-frame">
        <ErrorNote />
        <FailedTurn />
      </div>
    </div>
  );
}

function Gone(): ReactNode {
  const { commands } = useWorkbench();
  return (
    <div className="scroller">
      <Empty title="This session has been deleted.">
        <p>
          It was deleted, or the server was restarted without a persistent store. Your next message
          starts a new session.
        </p>
        <button
          type="button"
          className="button primary"
          onClick={() => commands.openSession(undefined)}
        >
          Start a new session
        </button>
      </Empty>
    </div>
  );
}
