import { type ReactNode, useDeferredValue, useState } from 'react';
import type { SessionInfo } from '../../../src/client/index.ts';
import { plural } from '../lib/format.ts';
import { placeHash } from '../lib/place.ts';
import { closeSheet } from '../shell/panels.ts';
import { useWorkbench } from '../shell/workbench.tsx';
import { Empty } from '../ui/empty.tsx';
import { Icon } from '../ui/icon.tsx';
import { MarkIcon } from '../ui/mark.tsx';
import { Time } from '../ui/time.tsx';
import { OwnerField } from './owner-field.tsx';
import { type SessionFilterName, SessionFilters } from './session-filters.tsx';
import { sessionTitle } from './session-title.ts';
import { useAsked } from './use-asked.ts';
import { useSessions } from './use-sessions.ts';

/** The sessions of the agent, with search. */
export function SessionList(): ReactNode {
  const { agent, info, commands, place } = useWorkbench();
  const [query, setQuery] = useState('');
  const [filter, setFilter] = useState<SessionFilterName>('all');
  const sessions = useSessions(agent, useDeferredValue(query.trim()), filter);
  if (!info.metadata.timeline) return <NoSessions />;
  return (
    <nav className="sessions" aria-label="Sessions">
      <header className="panel-header">
        <h2>Sessions</h2>
        <button
          type="button"
          className="icon-button"
          onClick={() => commands.openSession(undefined)}
          aria-label="New session"
          title="New session"
        >
          <Icon name="plus" />
        </button>
      </header>
      <OwnerField />
      <label className="search">
        <Icon name="search" size={14} />
        <input
          type="search"
          value={query}
          onChange={(event) => setQuery(event.target.value)}
          placeholder="Search sessions"
          aria-label="Search sessions"
          data-search
        />
        <kbd>/</kbd>
      </label>
      <SessionFilters agent={agent} chosen={filter} onChoose={setFilter} />
      <ul className="session-items">
        {sessions.items.map((session) => (
          <SessionItem
            key={session.sessionId}
            session={session}
            others={sessions.items}
            isCurrent={session.sessionId === place.session}
          />
        ))}
      </ul>
      {sessions.hasMore && (
        <button type="button" className="text-button more" onClick={sessions.loadMore}>
          Show older sessions
        </button>
      )}
      {sessions.items.length === 0 && !sessions.isLoading && (
        <Empty
          title={
            sessions.fault ?? (query || filter !== 'all' ? 'Nothing found.' : 'No sessions yet.')
          }
        >
          {!sessions.fault && (
            <p>
              {query
                ? 'Search covers titles, ids, metadata and messages.'
                : 'Your first message starts one.'}
            </p>
          )}
        </Empty>
      )}
    </nav>
  );
}

function SessionItem({
  session,
  others,
  isCurrent,
}: {
  readonly session: SessionInfo;
  readonly others: readonly SessionInfo[];
  readonly isCurrent: boolean;
}): ReactNode {
  const { agent, sessionId, turnCount, updatedAt, running, forkedFrom, startedBy } = session;
  const asked = useAsked(session);
  return (
    <li>
      <a
        className="session-item"
        href={placeHash({ view: 'chat', agent, session: sessionId })}
        onClick={() => closeSheet()}
        aria-current={isCurrent ? 'page' : undefined}
      >
        <span className="session-name" dir="auto">
          {sessionTitle(session, others, asked)}
        </span>
        <span className="session-facts">
          {running !== undefined && <MarkIcon kind="pending" />}
          {forkedFrom && <Icon name="branch" size={12} />}
          {startedBy && <Icon name="tool" size={12} />}
          <span>{running === undefined ? plural(turnCount, 'turn') : 'running'}</span>
          <Time iso={updatedAt} />
        </span>
      </a>
    </li>
  );
}

function NoSessions(): ReactNode {
  const { info, commands } = useWorkbench();
  return (
    <nav className="sessions" aria-label="Sessions">
      <header className="panel-header">
        <h2>Sessions</h2>
        <button
          type="button"
          className="icon-button"
          onClick={() => commands.openSession(undefined)}
          aria-label="New session"
        >
          <Icon name="plus" />
        </button>
      </header>
      <Empty title={`${info.name} keeps no sessions.`}>
        <p>
          This page holds its conversation. For sessions and a timeline, give the agent a store.
        </p>
      </Empty>
    </nav>
  );
}
