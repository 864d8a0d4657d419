import { type ReactNode, useCallback, useMemo } from 'react';
import type { Message, Part } from '../../../src/client/index.ts';
import { useAgentValue } from '../../../src/react/index.ts';
import { pulse } from '../lib/pulse.ts';
import { toolTimes } from '../lib/span-tree.ts';
import { useSource } from '../lib/use-source.ts';
import { useTurns } from '../lib/use-turns.ts';
import { useWorkbench } from '../shell/workbench.tsx';
import { Empty } from '../ui/empty.tsx';
import { CompareView } from './compare-view.tsx';
import { Composer } from './composer.tsx';
import { ConversationHeader } from './conversation-header.tsx';
import { Interrupts } from './interrupts.tsx';
import { ErrorNote, RunningNote } from './notes.tsx';
import { PastBar } from './past-bar.tsx';
import { SubAgents } from './sub-agents.tsx';
import { TurnView } from './turn-view.tsx';
import { useEarlier } from './use-earlier.ts';
import { useStickToEnd } from './use-stick-to-end.ts';
import { Welcome } from './welcome.tsx';

/** The conversation: as it is, as it was, or compared with how it was. */
export function Conversation(): ReactNode {
  const { session, place, info } = useWorkbench();
  const { online } = useSource(pulse);
  return (
    <main className="conversation" aria-label={`Conversation with ${info.name}`}>
      <ConversationHeader />
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
  const { store, place, spans, info, commands } = useWorkbench();
  const now = useAgentValue(store, (view) => view.transcript);
  const past = useAgentValue(store, (view) => view.past);
  const headId = useAgentValue(store, (view) => view.snapshotId);
  const isPast = place.snapshot !== undefined && place.snapshot !== headId;
  const messages = isPast && past ? (past.state?.messages ?? none) : now;
  const times = useMemo(() => toolTimes(spans ?? []), [spans]);
  if (messages.length === 0 && !isPast) return <Beginning />;
  return (
    <TurnList
      key={isPast ? past?.snapshotId : 'now'}
      messages={messages}
      isPast={isPast}
      times={times}
      agentName={info.name}
      commands={commands}
    />
  );
}

const none: readonly Message[] = [];

function TurnList({
  messages,
  isPast,
  times,
  agentName,
  commands,
}: {
  readonly messages: readonly Message[];
  readonly isPast: boolean;
  readonly times: ReadonlyMap<string, number>;
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
  const turns = useTurns(messages);
  const { first, earlier, showEarlier } = useEarlier(turns.length);
  const { scroller, content } = useStickToEnd();
  const resend = useResend(messages, commands);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section className="scroller" ref={scroller} aria-label="Messages" tabIndex={0}>
      <div ref={content} className="turns-frame">
        {first > 0 && (
          <button ref={earlier} type="button" className="text-button earlier" onClick={showEarlier}>
            Show earlier turns ({first.toLocaleString()})
          </button>
        )}
        <ol className="turns" data-past={isPast || undefined}>
          {turns.slice(first).map((turn) => (
            <TurnView
              key={turn.number}
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
          </>
        )}
      </div>
    </section>
  );
}

/** The same function as long as a conversation only grows, so that its messages need not be drawn again. */
function useResend(
  messages: readonly Message[],
  commands: ReturnType<typeof useWorkbench>['commands'],
): (index: number, content: Part[]) => void {
  const { store } = useWorkbench();
  return useCallback(
    (index, content) => {
      const { past, transcript: now } = store.getView();
      const shown = past?.state?.messages ?? now;
      void commands.resend(shown.length > index ? shown : messages, index, content);
    },
    [store, commands, messages],
  );
}

function Beginning(): ReactNode {
  const { store } = useWorkbench();
  const isLoading = useAgentValue(store, (view) => view.phase === 'loading');
  return (
    <div className="scroller">
      {isLoading ? <p className="quiet loading">Loading the session…</p> : <Welcome />}
      <ErrorNote />
    </div>
  );
}

function Gone(): ReactNode {
  const { commands } = useWorkbench();
  return (
    <div className="scroller">
      <Empty title="This session has been erased.">
        <p>
          It was deleted, or the server was restarted without a persistent store. Your next message
          starts a new session.
        </p>
        <button
          type="button"
          className="button primary"
          onClick={() => commands.openSession(undefined)}
        >
          Begin a new one
        </button>
      </Empty>
    </div>
  );
}
