import { endsTurn, type SnapshotEvent, type SnapshotStatus } from '../../protocol/snapshot.ts';
import type { State } from '../../protocol/state.ts';

/** A snapshot of the reference model: a full copy of its state. */
export interface ModelRow {
  readonly id: string;
  parent: string | undefined;
  /** -1: not listed. */
  index: number;
  readonly turnIndex: number;
  readonly event: SnapshotEvent;
  readonly status: SnapshotStatus;
  readonly interrupted: boolean;
  label?: string;
  readonly state: State;
  /** Ancestors whose messages are a prefix of every later state, by id, with the number of messages. */
  readonly unbroken: ReadonlyMap<string, number>;
}

export interface ModelSession {
  readonly id: string;
  readonly rows: Map<string, ModelRow>;
  head: string | undefined;
  nextIndex: number;
}

/** Every session by its id. */
export type Model = Map<string, ModelSession>;

/** The input for a new row; its position is computed. */
export type NewRow = Omit<ModelRow, 'parent' | 'index' | 'unbroken'> & {
  /** The snapshot it continues from. */
  readonly base: string | undefined;
  readonly listed?: boolean;
  /** The snapshot the run was claimed from. @default the base */
  readonly start?: string | undefined;
  /** A mid-turn snapshot: the head stays until the turn has ended. */
  readonly within?: boolean;
  /** Listed before it was finished, as for a detached run. */
  readonly index?: number;
};

type NewRowState = Pick<NewRow, 'id' | 'state'>;

export function sessionOf(model: Model, id: string): ModelSession {
  const session = model.get(id) ?? { id, rows: new Map(), head: undefined, nextIndex: 0 };
  model.set(id, session);
  return session;
}

/** Adds a row as a commit does. */
export function addRow(
  session: ModelSession,
  { base, listed = true, index, start = base, within = false, ...row }: NewRow,
): void {
  const { rows } = session;
  const from = base === undefined ? undefined : rows.get(base);
  const parent = from === undefined || from.index >= 0 ? from?.id : from.parent;
  if (row.status === 'succeeded') {
    if (!within || session.head !== start) leaveHead(session, start);
    if (!within) session.head = row.id;
  }
  rows.set(row.id, {
    ...row,
    parent,
    unbroken: unbrokenBy(row, from),
    index: index ?? (listed ? session.nextIndex++ : -1),
  });
}

function unbrokenBy({ id, state }: NewRowState, from: ModelRow | undefined): Map<string, number> {
  const { messages = [] } = state;
  const before = from?.state.messages ?? [];
  const still = [...(from?.unbroken ?? [])].filter(([, length]) => {
    const [was, is] = [before.slice(0, length), messages.slice(0, length)];
    return JSON.stringify(was) === JSON.stringify(is);
  });
  return new Map([...still, [id, messages.length]]);
}

/** Continuing from an unlisted head drops it; every other operation lists it. */
function leaveHead(session: ModelSession, base: string | undefined): void {
  const head = headOf(session);
  if (head === undefined || head.index >= 0) return;
  if (head.id === base) session.rows.delete(head.id);
  else head.index = session.nextIndex++;
}

export function headOf({ rows, head }: ModelSession): ModelRow | undefined {
  return head === undefined ? undefined : rows.get(head);
}

export function moveHead(session: ModelSession, id: string): void {
  if (session.head !== id) leaveHead(session, undefined);
  session.head = id;
}

/** The snapshots from the root to a snapshot. */
export function pathTo({ rows }: ModelSession, id: string | undefined): ModelRow[] {
  const row = id === undefined ? undefined : rows.get(id);
  return row === undefined ? [] : [...pathTo({ rows } as ModelSession, row.parent), row];
}

export function isOrphaned(session: ModelSession, row: ModelRow): boolean {
  const path = new Set(pathTo(session, session.head).map((each) => each.id));
  if (row.status === 'succeeded') return !path.has(row.id);
  return row.parent !== undefined && !path.has(row.parent);
}

/** The listed rows in the order of their index. */
export function listedRows({ rows }: ModelSession): ModelRow[] {
  return [...rows.values()].filter((row) => row.index >= 0).sort((a, b) => a.index - b.index);
}

/** Applies the retention rules until nothing changes. */
export function pruneRows(
  session: ModelSession,
  { keepLast, keepLabelled }: { readonly keepLast: number; readonly keepLabelled: boolean },
): number {
  const { rows } = session;
  const listed = listedRows(session);
  const newest = new Set(listed.slice(Math.max(0, listed.length - keepLast)));
  const startsFrom = (row: ModelRow, start: ModelRow): boolean => {
    const parent = row.parent === undefined ? undefined : rows.get(row.parent);
    if (parent === undefined || parent === start) return parent === start;
    return !endsTurn(parent.event) && startsFrom(parent, start);
  };
  const isAnswer = ({ status, event }: ModelRow): boolean =>
    status === 'succeeded' && endsTurn(event);
  const answersOf = (row: ModelRow): ModelRow[] =>
    [...rows.values()]
      .filter((each) => isAnswer(each) && startsFrom(each, row))
      .sort((a, b) => (a.index < 0 ? 1 : b.index < 0 ? -1 : a.index - b.index));
  const isKept = (row: ModelRow): boolean =>
    newest.has(row) ||
    row.id === session.head ||
    (keepLabelled && row.label !== undefined) ||
    (row.interrupted && answersOf(row).length === 0);
  const kept = new Set([...rows.values()].filter(isKept));
  for (const row of kept) {
    const parent = row.parent === undefined ? undefined : rows.get(row.parent);
    if (row.status !== 'succeeded' && parent !== undefined) kept.add(parent);
    const [answer] = row.interrupted ? answersOf(row) : [];
    if (answer !== undefined) kept.add(answer);
  }
  const survivor = (id: string | undefined): string | undefined => {
    const row = id === undefined ? undefined : rows.get(id);
    return row === undefined || kept.has(row) ? row?.id : survivor(row.parent);
  };
  for (const row of kept) row.parent = survivor(row.parent);
  const victims = [...rows.values()].filter((row) => !kept.has(row));
  for (const row of victims) rows.delete(row.id);
  return victims.length;
}
