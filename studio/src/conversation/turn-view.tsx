import { memo, type ReactNode } from 'react';
import type { Part, Snapshot } from '../../../src/client/index.ts';
import { count, plural } from '../lib/format.ts';
import type { ToolSpan } from '../lib/span-tree.ts';
import type { TurnGroup } from '../lib/turns.ts';
import { costText, totalTokens } from '../lib/usage.ts';
import type { Commands } from '../shell/commands.ts';
import { Icon } from '../ui/icon.tsx';
import { MarkIcon, markOf } from '../ui/mark.tsx';
import { Time } from '../ui/time.tsx';
import { MessageView } from './message-view.tsx';

/** One turn: its messages, and the snapshot they led to with what can be done there. */
export const TurnView = memo(function TurnView({
  turn,
  snapshot,
  isLive,
  isHead,
  agentName,
  toolTimes,
  commands,
  onResend,
}: {
  readonly turn: TurnGroup;
  readonly snapshot: Snapshot | undefined;
  readonly isLive: boolean;
  readonly isHead: boolean;
  readonly agentName: string;
  readonly toolTimes: ReadonlyMap<string, ToolSpan>;
  readonly commands: Commands;
  readonly onResend?: ((index: number, content: Part[]) => void) | undefined;
}) {
  return (
    <li className="turn">
      {turn.messages.map((placed) => (
        <MessageView
          key={placed.index}
          placed={placed}
          isLive={isLive}
          agentName={agentName}
          toolTimes={toolTimes}
          onResend={onResend}
        />
      ))}
      {snapshot && <TurnFoot snapshot={snapshot} isHead={isHead} commands={commands} />}
    </li>
  );
});

function TurnFoot({
  snapshot,
  isHead,
  commands,
}: {
  readonly snapshot: Snapshot;
  readonly isHead: boolean;
  readonly commands: Commands;
}): ReactNode {
  const { snapshotId, turnIndex, label, usage, createdAt, status } = snapshot;
  const turn = `turn ${turnIndex + 1}`;
  return (
    <footer className="turn-foot">
      <button
        type="button"
        className="turn-facts"
        onClick={() => commands.look(snapshotId)}
        title="View this snapshot"
      >
        <MarkIcon kind={markOf(snapshot, isHead)} />
        <span className="visually-hidden">View </span>
        <span>{turn}</span>
        <Time iso={createdAt} form="clock" />
        {usage && totalTokens(usage) > 0 && (
          <span title={plural(totalTokens(usage), 'token')}>
            {count(totalTokens(usage))} tokens
            {usage.cost && ` · ${costText(usage)}`}
          </span>
        )}
      </button>
      {label !== undefined && (
        <span className="chip flagged" dir="auto">
          <Icon name="flag" size={12} />
          <span>{label}</span>
        </span>
      )}
      {status === 'succeeded' && (
        <span className="turn-actions">
          {!isHead && (
            <button
              type="button"
              className="text-button"
              onClick={() => void commands.restore(snapshotId)}
              aria-label={`Restore ${turn}`}
            >
              <Icon name="back" size={14} /> Restore
            </button>
          )}
          <button
            type="button"
            className="text-button"
            onClick={() => void commands.fork(snapshotId)}
            aria-label={`Fork ${turn}`}
          >
            <Icon name="branch" size={14} /> Fork
          </button>
          <button
            type="button"
            className="text-button"
            onClick={() => commands.rerun(snapshot)}
            aria-label={`Run again with…: ${turn}`}
          >
            <Icon name="compare" size={14} /> Run again with…
          </button>
          <button
            type="button"
            className="text-button"
            onClick={() => commands.label(snapshot)}
            aria-label={`Label ${turn}`}
          >
            <Icon name="flag" size={14} /> Label
          </button>
        </span>
      )}
    </footer>
  );
}
