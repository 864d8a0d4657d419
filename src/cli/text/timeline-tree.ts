import type { Snapshot } from '../../protocol/snapshot.ts';
import { oneLine } from './safe.ts';
import type { Style } from './style.ts';

/** The data of a tree. */
export interface TimelineView {
  readonly snapshots: readonly Snapshot[];
  readonly headId?: string | undefined;
  /** The user's message of each turn, by snapshot id. */
  readonly texts: ReadonlyMap<string, string>;
}

/**
 * The tree of a session, one row per snapshot. The path to the head runs straight down; branches are indented where they
 * start. Marks: ◉ head, ● ancestor of the head, ○ orphaned, ✗ failed, ▬ aborted, ◐ pending.
 */
export function timelineTree(view: TimelineView, style: Style): string {
  const children = childrenOf(view.snapshots);
  const onPath = pathOf(view);
  const rows: Row[] = [];
  const draw = (start: Snapshot, lead: string, first: string): void => {
    let at: Snapshot | undefined = start;
    let join = first;
    while (at !== undefined) {
      rows.push({ graph: join, snapshot: at });
      join = lead;
      const next: readonly Snapshot[] = children.get(at.snapshotId) ?? [];
      const main: Snapshot | undefined = mainOf(next, onPath);
      for (const side of next) if (side !== main) draw(side, `${lead}│ `, `${lead}├─`);
      at = main;
    }
  };
  for (const root of children.get('') ?? []) draw(root, '', '');
  return render(rows, view, style);
}

interface Row {
  readonly graph: string;
  readonly snapshot: Snapshot;
}

// Of several children, the one that leads to the head; otherwise the latest that succeeded, otherwise the latest.
function mainOf(next: readonly Snapshot[], onPath: ReadonlySet<string>): Snapshot | undefined {
  return (
    next.find(({ snapshotId }) => onPath.has(snapshotId)) ??
    next.findLast(({ status }) => status === 'succeeded') ??
    next.at(-1)
  );
}

// Children by parent id. A snapshot whose parent was pruned, or is in another session, is a root, under ''.
function childrenOf(snapshots: readonly Snapshot[]): Map<string, Snapshot[]> {
  const known = new Set(snapshots.map(({ snapshotId }) => snapshotId));
  const children = new Map<string, Snapshot[]>();
  for (const snapshot of snapshots) {
    const { parentId = '' } = snapshot;
    const parent = known.has(parentId) ? parentId : '';
    const siblings = children.get(parent) ?? [];
    siblings.push(snapshot);
    children.set(parent, siblings);
  }
  return children;
}

function pathOf({ snapshots, headId }: TimelineView): Set<string> {
  const byId = new Map(snapshots.map((each) => [each.snapshotId, each]));
  const path = new Set<string>();
  for (let at = byId.get(headId ?? ''); at; at = byId.get(at.parentId ?? '')) {
    path.add(at.snapshotId);
  }
  return path;
}

function render(rows: readonly Row[], { headId, texts }: TimelineView, style: Style): string {
  const width = Math.max(0, ...rows.map(({ graph }) => graph.length));
  return rows
    .map(({ graph, snapshot }) => {
      const { snapshotId, turnIndex, label, orphaned } = snapshot;
      const isHead = snapshotId === headId;
      const mark = markOf(snapshot, isHead);
      const notes = [
        isHead ? style.good('head') : '',
        orphaned ? 'orphaned' : '',
        statusNote(snapshot),
        snapshot.event === 'turnEnd' ? '' : snapshot.event,
        label === undefined ? '' : style.warn(`⚑ ${oneLine(label, 40)}`),
      ].filter(Boolean);
      const text = oneLine(texts.get(snapshotId) ?? '', 48);
      const line = `${graph.padEnd(graph.length)}${mark}${' '.repeat(width - graph.length)} ${String(turnIndex + 1).padStart(3)}  ${style.dim(snapshotId)}  ${text}${notes.length > 0 ? `  [${notes.join(', ')}]` : ''}`;
      return orphaned ? style.dim(line) : line;
    })
    .join('\n');
}

function markOf({ status, orphaned }: Snapshot, isHead: boolean): string {
  if (isHead) return '◉';
  switch (status) {
    case 'failed':
      return '✗';
    case 'aborted':
      return '▬';
    case 'pending':
    case 'expired':
      return '◐';
    case 'succeeded':
      return orphaned ? '○' : '●';
  }
}

function statusNote({ status, finishReason }: Snapshot): string {
  if (status !== 'succeeded') return status;
  return finishReason === 'interrupted' || finishReason === 'aborted' ? finishReason : '';
}
