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
  const { snapshotId, turnIndex, label, createdAt } = snapshot;
  const words = [
    `Turn ${turnIndex + 1}`,
    title,
    isHead ? 'head' : markWords[mark],
    label === undefined ? undefined : `labelled ${label}`,
    isBase ? 'compared from here' : undefined,
  ];
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
      aria-label={words.filter(Boolean).join(', ')}
      data-mark={mark}
      data-head={isHead || undefined}
      data-base={isBase || undefined}
      data-pale={!isActive || undefined}
      style={{ transform: `translateY(${top}px)`, paddingInlineStart: indent }}
      onClick={(event) => onSelect(snapshotId, event.shiftKey)}
    >
      <span className="turn-number">{turnIndex + 1}</span>
      <span className="row-title" dir="auto">
        {title ?? (mark === 'pending' ? 'running…' : '…')}
      </span>
      {label !== undefined && (
        <span className="chip flagged" dir="auto" title={label}>
          <Icon name="flag" size={12} />
          <span>{label}</span>
        </span>
      )}
      {isBase && <span className="chip">from</span>}
      {isHead ? (
        <span className="chip head">head</span>
      ) : (
        createdAt !== '' && <Time iso={createdAt} />
      )}
    </div>
  );
});
