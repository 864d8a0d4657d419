import { type ReactNode, useMemo } from 'react';
import type { Message, Snapshot } from '../../../src/client/index.ts';
import { useAgentValue } from '../../../src/react/index.ts';
import { latestFailure } from '../lib/failed-turns.ts';
import { faultOfSnapshot } from '../lib/faults.ts';
import { lastPage } from '../lib/message-pages.ts';
import { toolTimes } from '../lib/span-tree.ts';
import { openTurn, toTurns } from '../lib/turns.ts';
import { useSnapshot } from '../lib/use-snapshot.ts';
import { useWorkbench } from '../shell/workbench.tsx';
import { FaultText } from '../ui/fault-text.tsx';
import { Icon } from '../ui/icon.tsx';
import { MessageView } from './message-view.tsx';

/** The failed turn that came last, which the conversation does not contain: what was asked, and why it failed. */
export function FailedTurn(): ReactNode {
  const { store, agent, info, spans } = useWorkbench();
  const times = useMemo(() => toolTimes(spans ?? []), [spans]);
  const headId = useAgentValue(store, (view) => view.snapshotId);
  const timeline = useAgentValue(store, (view) => view.timeline);
  // While this page still shows how its own turn ended, that is all there is to say.
  const isTold = useAgentValue(
    store,
    ({ phase, error, finishReason }) =>
      phase !== 'ready' || error !== undefined || finishReason !== undefined,
  );
  const failed = isTold ? undefined : latestFailure(timeline, headId);
  const read = useSnapshot(agent, failed?.snapshotId, { page: lastPage.messages });
  const messages = useMemo(
    () => toTurns(openTurn(read?.state?.messages ?? [])).flatMap((turn) => turn.messages),
    [read],
  );
  if (!failed || !read) return null;
  return (
    <section className="failed-turn" aria-label="Failed turn">
      {messages.map((placed) => (
        <MessageView
          key={placed.index}
          placed={placed}
          isLive={false}
          agentName={info.name}
          toolTimes={times}
        />
      ))}
      <SnapshotFault snapshot={failed} asked={messages[0]?.message} />
    </section>
  );
}

const words: Readonly<Record<string, string>> = {
  failed: 'This turn failed.',
  aborted: 'This turn was stopped in the background.',
  expired: 'This turn did not end: its process stopped.',
};

/** Why a turn failed, and how to ask again; nothing for a turn that did not. */
export function SnapshotFault({
  snapshot: { snapshotId, status, error, turnIndex },
  asked,
}: {
  readonly snapshot: Snapshot;
  /** The message of the failed turn, to send it again. */
  readonly asked: Message | undefined;
}): ReactNode {
  const { spans, commands } = useWorkbench();
  const said = words[status];
  if (said === undefined) return null;
  const thrown = faultOfSnapshot(spans, snapshotId);
  return (
    <div className="note fault" role="alert">
      <Icon name="warning" />
      <div>
        <p>
          {said}{' '}
          <span className="quiet">
            Turn {turnIndex + 1}
            {error && ` · ${error.status}`}
          </span>
        </p>
        {thrown ? <FaultText text={thrown.text} /> : error && <p dir="auto">{error.message}</p>}
      </div>
      {asked?.role === 'user' && (
        <button
          type="button"
          className="button"
          onClick={() => void commands.send({ message: { role: 'user', content: asked.content } })}
        >
          Try again
        </button>
      )}
    </div>
  );
}
