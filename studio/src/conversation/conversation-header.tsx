import { type ReactNode, useMemo } from 'react';
import type { SessionInfo } from '../../../src/client/index.ts';
import { useAgentValue } from '../../../src/react/index.ts';
import { count, plural } from '../lib/format.ts';
import { placeHash } from '../lib/place.ts';
import { titleOf } from '../lib/turns.ts';
import { addUsage, costText, totalTokens } from '../lib/usage.ts';
import { sessionTitle } from '../sessions/session-title.ts';
import { openDialog } from '../shell/dialogs.ts';
import { useWorkbench } from '../shell/workbench.tsx';
import { Icon } from '../ui/icon.tsx';

/** The title, origin and usage of the session. */
export function ConversationHeader(): ReactNode {
  const { store, session } = useWorkbench();
  const sessionId = useAgentValue(store, (view) => view.sessionId);
  const first = useAgentValue(store, (view) =>
    view.earlier > 0 ? undefined : titleOf(view.transcript.slice(0, 4)),
  );
  const info = session === 'gone' ? undefined : session;
  const unknown = session === 'gone' ? 'Deleted session' : (first ?? 'New session');
  const title = info ? sessionTitle(info, [], first) : unknown;
  return (
    <header className="conversation-header">
      <h1 dir="auto" title={title}>
        {title}
      </h1>
      {info && <Origin session={info} />}
      {session !== 'gone' && <TokenTotal />}
      {sessionId !== undefined && info && (
        <span className="header-buttons">
          <button
            type="button"
            className="icon-button"
            onClick={() => openDialog.set({ type: 'rename', session: info })}
            aria-label="Rename the session"
            title="Rename"
          >
            <Icon name="edit" size={14} />
          </button>
          <button
            type="button"
            className="icon-button"
            onClick={() => openDialog.set({ type: 'delete', session: info })}
            aria-label="Delete the session"
            title="Delete"
          >
            <Icon name="trash" size={14} />
          </button>
        </span>
      )}
    </header>
  );
}

function Origin({
  session: { agent, forkedFrom, startedBy },
}: {
  readonly session: SessionInfo;
}): ReactNode {
  if (forkedFrom) {
    const { sessionId: session, snapshotId: snapshot } = forkedFrom;
    return (
      <a className="chip" href={placeHash({ view: 'chat', agent, session, snapshot })}>
        <Icon name="branch" size={12} /> forked
      </a>
    );
  }
  if (startedBy) {
    const { agent: by, sessionId: session, snapshotId: snapshot } = startedBy;
    return (
      <a
        className="chip"
        href={placeHash({
          view: 'chat',
          agent: by,
          session,
          ...(snapshot !== undefined && { snapshot }),
        })}
      >
        <Icon name="tool" size={12} /> asked by {by}
      </a>
    );
  }
  return null;
}

/** Tokens along the way to the head. */
function TokenTotal(): ReactNode {
  const { store } = useWorkbench();
  const timeline = useAgentValue(store, (view) => view.timeline);
  const hasEarlier = useAgentValue(store, (view) => view.hasEarlierSnapshots);
  const used = useMemo(
    () => addUsage(timeline.filter(({ orphaned }) => !orphaned).map(({ usage }) => usage)),
    [timeline],
  );
  const { inputTokens = 0, outputTokens = 0 } = used;
  const total = totalTokens(used);
  const cost = costText(used);
  if (total === 0) return null;
  const words = `${plural(inputTokens, 'token')} in, ${plural(outputTokens, 'token')} out`;
  return (
    <span
      className="token-total quiet"
      title={hasEarlier ? `${words}, in the turns that are loaded` : words}
    >
      {count(total)}
      {hasEarlier && '+'} tokens{cost !== '' && ` · ${cost}${hasEarlier ? '+' : ''}`}
    </span>
  );
}
