import { memo } from 'react';
import { Icon } from '../ui/icon.tsx';
import { markWords } from '../ui/mark.tsx';
import { Time } from '../ui/time.tsx';
import type { GraphRow } from './graph.ts';

/** One snapshot of the timeline in words; its mark is drawn beside it. */
export const TimelineRow = memo(function TimelineRow({
  row: { snapshot, row, mark, isHead, isActive },
  title,
  top,
  indent,
  total,
  isSelected,
  isBase,
  onSelect,
}: {
  readonly row: GraphRow;
  readonly title: string | undefined;
  readonly top: number;
  readonly indent: number;
  readonly total: number;
  readonly isSelected: boolean;
  readonly isBase: boolean;
  readonly onSelect: (snapshotId: string, isRange: boolean) => void;
}) {
  const { snapshotId, turnIndex, label, createdAt, event } = snapshot;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the list itself takes the keys
    <div
      id={`row-${snapshotId}`}
      className="timeline-row"
      role="option"
      tabIndex={-1}
      aria-selected={isSelected}
      aria-posinset={row + 1}
      aria-setsize={total}
      data-mark={mark}
      data-head={isHead || undefined}
      data-base={isBase || undefined}
      data-pale={!isActive || undefined}
      style={{ transform: `translateY(${top}px)`, paddingInlineStart: indent }}
      onClick={(event) => onSelect(snapshotId, event.shiftKey)}
    >
      <span className="turn-number">
        <span className="visually-hidden">Turn </span>
        {turnIndex + 1}
      </span>
      <span className="row-title" dir="auto">
        {event === 'edit' ? 'Edited state' : (title ?? (mark === 'pending' ? 'running…' : '…'))}
      </span>
      {label !== undefined && (
        <span className="chip flagged" title={label}>
          <Icon name="flag" size={12} />
          <span className="visually-hidden">labelled </span>
          <span dir="auto">{label}</span>
        </span>
      )}
      {!isHead && <span className="visually-hidden">({markWords[mark]})</span>}
      {isBase && (
        <span className="chip">
          <span className="visually-hidden">compared </span>from
        </span>
      )}
      {isHead ? (
        <span className="chip head">head</span>
      ) : (
        createdAt !== '' && <Time iso={createdAt} />
      )}
    </div>
  );
});
