import type { ReactNode } from 'react';
import type { Snapshot } from '../../../src/client/index.ts';

/** The kind of a snapshot, as its mark shows it: told apart by shape first, colour second. */
export type MarkKind =
  | 'head'
  | 'done'
  | 'orphaned'
  | 'waiting'
  | 'stopped'
  | 'failed'
  | 'aborted'
  | 'pending'
  | 'expired'
  | 'step';

/** In words, for those who hear it and for the legend. */
export const markWords: Readonly<Record<MarkKind, string>> = {
  head: 'head: the next turn continues from here',
  done: 'on the path to the head',
  orphaned: 'on another branch; restore it to continue from there',
  waiting: 'waiting for an answer',
  stopped: 'stopped; the partial answer is kept',
  failed: 'failed',
  aborted: 'aborted in the background',
  pending: 'running',
  expired: 'its process stopped',
  step: 'in the middle of a turn',
};

/** The mark of a snapshot. */
export function markOf(
  {
    status,
    finishReason,
    orphaned,
    event,
  }: Pick<Snapshot, 'status' | 'finishReason' | 'orphaned' | 'event'>,
  isHead: boolean,
): MarkKind {
  switch (status) {
    case 'failed':
    case 'aborted':
    case 'pending':
    case 'expired':
      return status;
    case 'succeeded':
      if (finishReason === 'interrupted') return 'waiting';
      if (isHead) return 'head';
      if (finishReason === 'aborted') return 'stopped';
      if (event === 'toolIterationEnd') return 'step';
      return orphaned ? 'orphaned' : 'done';
  }
}

/** A mark around a point, as SVG; the head has a ring around whatever it is. */
export function Mark({
  kind,
  x = 0,
  y = 0,
  isHead = false,
  isPale = false,
}: {
  readonly kind: MarkKind;
  readonly x?: number;
  readonly y?: number;
  readonly isHead?: boolean;
  readonly isPale?: boolean;
}): ReactNode {
  const className = ['mark', `mark-${kind}`, isPale && 'pale'].filter(Boolean).join(' ');
  return (
    <g className={className} transform={`translate(${x} ${y})`}>
      {(isHead || kind === 'head') && <circle className="mark-ring" r="7.5" />}
      {markShape(kind)}
    </g>
  );
}

function markShape(kind: MarkKind): ReactNode {
  switch (kind) {
    case 'head':
      return <circle r="4.5" />;
    case 'done':
      return <circle r="4" />;
    case 'orphaned':
      return <circle r="3.75" className="hollow" />;
    case 'step':
      return <circle r="2" />;
    case 'waiting':
      return <path className="hollow" d="M0-5 5 0 0 5-5 0z" />;
    case 'stopped':
      return <rect x="-3.5" y="-3.5" width="7" height="7" rx="1" />;
    case 'failed':
      return <path className="stroke" d="M-3.5-3.5l7 7M3.5-3.5l-7 7" />;
    case 'aborted':
      return <rect x="-5" y="-2" width="10" height="4" rx="1" />;
    case 'pending':
      return (
        <g className="turning">
          <circle r="4.5" className="hollow" />
          <path d="M0-4.5a4.5 4.5 0 0 1 0 9z" />
        </g>
      );
    case 'expired':
      return (
        <>
          <circle r="4.5" className="hollow dashed" />
          <path d="M0-4.5a4.5 4.5 0 0 1 0 9z" />
        </>
      );
  }
}

/** A mark on its own, for lists and legends. */
export function MarkIcon({ kind }: { readonly kind: MarkKind }): ReactNode {
  return (
    <svg className="mark-icon" width="18" height="18" viewBox="-9 -9 18 18" aria-hidden="true">
      <Mark kind={kind} />
    </svg>
  );
}
