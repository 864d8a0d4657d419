import type { ReactNode } from 'react';
import { duration, plural } from '../lib/format.ts';
import type { Place } from '../lib/place.ts';
import { FaultText } from '../ui/fault-text.tsx';
import { Icon } from '../ui/icon.tsx';
import { MarkIcon, type MarkKind } from '../ui/mark.tsx';
import { Time } from '../ui/time.tsx';
import { ToolItem } from './tool-item.tsx';
import type { SourceConnection, SourceInfo } from './use-sources.ts';

const marks: Readonly<Record<SourceConnection['state'], MarkKind>> = {
  connected: 'done',
  connecting: 'pending',
  failed: 'failed',
  idle: 'orphaned',
};

/** A tool source: whether it is connected, why not, and its tools. */
export function SourceCard({
  source: { name, connections = [] },
  place,
}: {
  readonly source: SourceInfo;
  readonly place: Place;
}): ReactNode {
  return (
    <li className="run-card source-card" aria-label={name}>
      <h3 className="source-name">{name}</h3>
      {connections.map((connection) => (
        <Connection key={connection.user ?? ''} connection={connection} />
      ))}
      {connections.length === 0 && <p className="quiet">It does not report its state.</p>}
      {/* The tools of one user can be other ones than those of the next, and are called in their turns only. */}
      {connections.map(
        ({ user, tools = [] }) =>
          user === undefined && (
            <ul className="tool-list" key="tools" aria-label={`Tools of ${name}`}>
              {tools.map((tool) => (
                <ToolItem
                  key={tool.name}
                  owner={{ source: name }}
                  tool={tool}
                  isOpen={place.source === name && place.tool === tool.name}
                />
              ))}
            </ul>
          ),
      )}
    </li>
  );
}

function Connection({
  connection: { state, user, tools, lastError, retryAt },
}: {
  readonly connection: SourceConnection;
}): ReactNode {
  const wait = retryAt === undefined ? 0 : retryAt - Date.now();
  return (
    <div className="source-state" data-state={state}>
      <p className="run-head">
        <MarkIcon kind={marks[state]} />
        <span role="status">{state}</span>
        <span className="quiet">
          {user !== undefined && `${user} · `}
          {tools === undefined ? 'tools not listed yet' : plural(tools.length, 'tool')}
          {state === 'failed' &&
            (wait > 0 ? ` · next attempt in ${duration(wait)}` : ' · connects on next use')}
        </span>
      </p>
      {lastError && (
        <details className="fold" open={state === 'failed'}>
          <summary>
            <Icon name="chevron" size={12} /> {state === 'failed' ? 'Reason' : 'Last error'}
            <Time iso={lastError.at} form="clock" />
          </summary>
          <div className="fold-body">
            <p dir="auto" className="fault-text">
              {lastError.message}
            </p>
            <FaultText text={lastError.stack} />
          </div>
        </details>
      )}
    </div>
  );
}
