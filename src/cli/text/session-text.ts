import type { SessionInfo } from '../../protocol/session.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { State } from '../../protocol/state.ts';
import type { AgentAccess } from '../source/agent-access.ts';
import type { Style } from '../terminal.ts';
import { oneLine, table, when } from './format.ts';
import { messageSummary } from './message-text.ts';

/** Sessions as a table. */
export function sessionTable(items: readonly SessionInfo[], style: Style): string {
  return table([
    ['SESSION', 'AGENT', 'TURNS', 'UPDATED', 'TITLE'],
    ...items.map(({ sessionId, agent, turnCount, updatedAt, title, running }) => [
      oneLine(sessionId, 64),
      agent,
      String(turnCount),
      when(updatedAt),
      [oneLine(title ?? ''), running === undefined ? '' : style.warn(`◐ running ${running}`)]
        .filter(Boolean)
        .join('  '),
    ]),
  ]);
}

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

// The child to draw straight down: the one that leads to the head; otherwise the latest that succeeded, otherwise the latest.
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

/** How many branches are read: each loads a state. */
const maxTips = 32;

/** The user's message of each turn, by snapshot id. The last message of a turn carries the id. */
export async function snapshotTexts(
  agent: Pick<AgentAccess, 'getSnapshot'>,
  snapshots: readonly Snapshot[],
): Promise<Map<string, string>> {
  const parents = new Set(snapshots.map(({ parentId }) => parentId));
  const tips = snapshots.filter(({ snapshotId }) => !parents.has(snapshotId)).slice(-maxTips);
  const texts = new Map<string, string>();
  for (const { snapshotId } of tips) {
    const tip = await agent.getSnapshot({ snapshotId });
    if (tip?.state) addTexts(texts, tip.state as State, snapshotId);
  }
  return texts;
}

function addTexts(texts: Map<string, string>, { messages = [] }: State, tipId: string): void {
  let said = '';
  for (const message of messages) {
    if (message.role === 'user') said = messageSummary(message);
    const id = message.metadata?.snapshotId;
    if (typeof id === 'string') texts.set(id, said);
  }
  // A failed or unfinished turn has its own last message, without an id.
  if (!texts.has(tipId)) texts.set(tipId, said);
}

/** The filters of a list. */
interface Filters {
  readonly agent?: string;
  readonly owner?: string;
  readonly url?: string;
  readonly query?: string;
  readonly failed?: boolean;
  readonly waiting?: boolean;
  readonly labelled?: boolean;
}

/** Why a list is empty: which filters were applied, and whose data was read. */
export function emptyList(what: string, options: Filters): string {
  const { agent, query, owner, url } = options;
  const filters = [
    agent === undefined ? '' : ` of agent "${agent}"`,
    query === undefined ? '' : ` that match "${query}"`,
    owner === undefined ? '' : ` of owner "${owner}"`,
    options.failed ? ' whose last turn failed' : '',
    options.waiting ? ' that wait for an answer' : '',
    options.labelled ? ' with a label' : '',
  ].join('');
  return `No ${what}${filters}. ${whose(owner, url)}`.trim();
}

function whose(owner: string | undefined, url: string | undefined): string {
  if (url !== undefined) {
    return 'A server lists only what its caller owns: to authenticate, use --header.';
  }
  if (owner !== undefined) return '';
  return 'Sessions that have an owner are not included: to read them, use --owner.';
}
