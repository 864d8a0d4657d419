import type { RemoteAgent } from '../../client/remote-agent.ts';
import type { SessionInfo } from '../../protocol/session.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { State } from '../../protocol/state.ts';
import type { Style } from '../terminal.ts';
import { oneLine, table, when } from './format.ts';
import { messageSummary } from './message-text.ts';

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

interface TimelineView {
  readonly snapshots: readonly Snapshot[];
  readonly headId?: string | undefined;
  /** The user's message of each turn, by snapshot id. */
  readonly texts: ReadonlyMap<string, string>;
}

/**
 * The tree of a session, one row per snapshot. The path to the head runs straight down; branches are indented where they
 * start. Marks: ◉ head, ● ancestor of the head, ○ orphaned, ✗ failed, ▬ aborted, ◐ pending.
 */
export function timelineTree({ snapshots, headId, texts }: TimelineView, style: Style): string {
  const byId = new Map(snapshots.map((each) => [each.snapshotId, each]));
  // A snapshot whose parent was pruned, or is in another session, is a root, under ''.
  const children = Map.groupBy(snapshots, ({ parentId = '' }) =>
    byId.has(parentId) ? parentId : '',
  );
  const onPath = new Set<Snapshot>();
  for (let at = byId.get(headId ?? ''); at; at = byId.get(at.parentId ?? '')) onPath.add(at);
  const rows: { readonly graph: string; readonly snapshot: Snapshot }[] = [];
  const draw = (start: Snapshot, lead: string, first: string): void => {
    let join = first;
    for (let at: Snapshot | undefined = start; at !== undefined; ) {
      rows.push({ graph: join, snapshot: at });
      join = lead;
      const next: readonly Snapshot[] = children.get(at.snapshotId) ?? [];
      // Straight down is the child that leads to the head; otherwise the latest that succeeded, otherwise the latest.
      const main: Snapshot | undefined =
        next.find((each) => onPath.has(each)) ??
        next.findLast(({ status }) => status === 'succeeded') ??
        next.at(-1);
      for (const side of next) if (side !== main) draw(side, `${lead}│ `, `${lead}├─`);
      at = main;
    }
  };
  for (const root of children.get('') ?? []) draw(root, '', '');
  const width = Math.max(0, ...rows.map(({ graph }) => graph.length));
  const lines = rows.map(({ graph, snapshot }) => {
    const { snapshotId, turnIndex, label, orphaned, event } = snapshot;
    const isHead = snapshotId === headId;
    const notes = [
      isHead ? style.good('head') : '',
      orphaned ? 'orphaned' : '',
      statusNote(snapshot),
      event === 'turnEnd' ? '' : event,
      label === undefined ? '' : style.warn(`⚑ ${oneLine(label, 40)}`),
    ].filter(Boolean);
    const mark = markOf(snapshot, isHead) + ' '.repeat(width - graph.length);
    const turn = String(turnIndex + 1).padStart(3);
    const text = oneLine(texts.get(snapshotId) ?? '', 48);
    const more = notes.length > 0 ? `  [${notes.join(', ')}]` : '';
    const line = `${graph}${mark} ${turn}  ${style.dim(snapshotId)}  ${text}${more}`;
    return orphaned ? style.dim(line) : line;
  });
  return lines.join('\n');
}

const marks = { failed: '✗', aborted: '▬', pending: '◐', expired: '◐', succeeded: '●' } as const;

function markOf({ status, orphaned }: Snapshot, isHead: boolean): string {
  if (isHead) return '◉';
  return status === 'succeeded' && orphaned ? '○' : marks[status];
}

function statusNote({ status, finishReason }: Snapshot): string {
  if (status !== 'succeeded') return status;
  return finishReason === 'interrupted' || finishReason === 'aborted' ? finishReason : '';
}

/** How many branches are read: each loads a state. */
const maxTips = 32;

/** The user's message of each turn, by snapshot id. The last message of a turn carries the id. */
export async function snapshotTexts(
  agent: Pick<RemoteAgent, 'getSnapshot'>,
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

/** Why a list is empty: which filters were applied, and whose data was read. */
export function emptyList(
  what: string,
  options: Partial<Record<'agent' | 'owner' | 'url' | 'query', string>> &
    Partial<Record<'failed' | 'waiting' | 'labelled', boolean>>,
): string {
  const { agent, query, owner, url } = options;
  const filters = [
    agent === undefined ? '' : ` of agent "${agent}"`,
    query === undefined ? '' : ` that match "${query}"`,
    owner === undefined ? '' : ` of owner "${owner}"`,
    options.failed ? ' whose last turn failed' : '',
    options.waiting ? ' that wait for an answer' : '',
    options.labelled ? ' with a label' : '',
  ].join('');
  if (url !== undefined)
    return `No ${what}${filters}. A server lists only what its caller owns: to authenticate, use --header.`;
  if (owner !== undefined) return `No ${what}${filters}.`;
  return `No ${what}${filters}. Sessions that have an owner are not included: to read them, use --owner.`;
}
