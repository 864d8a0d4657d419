import { expect } from 'vitest';
import { type MessagePage, positionsOf, withPage } from '../../protocol/message-page.ts';
import { endsTurn, type Snapshot } from '../../protocol/snapshot.ts';
import type { State } from '../../protocol/state.ts';
import { hashState, type SessionState } from '../../session/session-state.ts';
import type { Scope } from '../../store/contract/store.ts';
import { type Kit, plain } from './kit.ts';
import {
  isOrphaned,
  listedRows,
  type Model,
  type ModelRow,
  type ModelSession,
  pathTo,
} from './model.ts';

/** A copy that shares nothing with the store's data. */
export function copyOf(state: SessionState): State {
  return JSON.parse(JSON.stringify(plain(state)));
}

/** Compares the metadata of a snapshot. */
export function expectRow(session: ModelSession, snapshot: Snapshot): void {
  const row = session.rows.get(snapshot.snapshotId);
  expect({
    parent: snapshot.parentId,
    index: snapshot.index,
    turnIndex: snapshot.turnIndex,
    event: snapshot.event,
    status: snapshot.status,
    label: snapshot.label,
    orphaned: snapshot.orphaned,
  }).toEqual({
    parent: row?.parent,
    index: row?.index,
    turnIndex: row?.turnIndex,
    event: row?.event,
    status: row?.status,
    label: row?.label,
    orphaned: row && isOrphaned(session, row),
  });
}

/** Reads and compares everything. */
export async function compare(kit: Kit, scope: Scope, model: Model): Promise<void> {
  const { store, timeline, maintenance, runs } = kit;
  for (const session of model.values()) {
    const options = { includeOrphaned: true, limit: 1000 };
    const { items } = await timeline.listSnapshots(scope, session.id, options);
    expect(items.map((each) => each.snapshotId)).toEqual(listedRows(session).map((row) => row.id));
    for (const item of items) expectRow(session, item);
    for (const row of session.rows.values()) {
      const read = await store.getSnapshot(scope, { snapshotId: row.id });
      if (read === undefined) expect.fail(`snapshot ${row.id} is gone`);
      expectRow(session, read);
      expectState(session, row, read.state ?? {});
      const total = read.state?.messages?.length ?? 0;
      for (const page of [{ last: 3 }, { last: 2, before: Math.ceil(total / 2) }]) {
        const part = await store.getSnapshot(scope, { snapshotId: row.id }, { messages: page });
        expectPage(session, row, page, part && withPage(part, page));
      }
      const loaded = await runs.load(scope, { snapshotId: row.id });
      expect(loaded && copyOf(loaded.state)).toEqual(row.state);
      expect(loaded && hashState(loaded.state)).toBe(read.stateHash);
    }
    const head = await store.getSnapshot(scope, { sessionId: session.id });
    expect(head?.snapshotId).toBe(session.head);
  }
  expect(await maintenance.verify()).toEqual([]);
}

function expectState(session: ModelSession, row: ModelRow, state: State): void {
  const { messages = [], ...rest } = row.state;
  const read = (state.messages ?? []).map(({ metadata: _, ...bare }) => bare);
  expect({ ...state, messages: read }).toEqual({ ...rest, messages });
  const marked = (state.messages ?? []).map((each) => each.metadata?.snapshotId);
  expectMarks(session, row, marked, 0);
}

/** Compares a page of the messages of a snapshot. */
function expectPage(
  session: ModelSession,
  row: ModelRow,
  page: MessagePage,
  part: Snapshot | undefined,
): void {
  const { messages = [], ...rest } = row.state;
  const { from, to } = positionsOf(page, messages.length);
  expect(part?.messageRange).toEqual({ from, total: messages.length });
  const read = part?.state?.messages ?? [];
  const bare = read.map(({ metadata: _, ...each }) => each);
  expect({ ...part?.state, messages: bare }).toEqual({
    ...rest,
    messages: messages.slice(from, to),
  });
  const marked = read.map((each) => each.metadata?.snapshotId);
  expectMarks(session, row, marked, from);
}

/** Compares the snapshot ids on messages, the first of which stands at position `from`. */
function expectMarks(
  session: ModelSession,
  row: ModelRow,
  marked: readonly unknown[],
  from: number,
): void {
  const { messages = [] } = row.state;
  const turns = pathTo(session, row.id).filter(isTurnEnd);
  const needed: unknown[] = messages.map(() => undefined);
  for (const { id } of turns) {
    const length = row.unbroken.get(id) ?? 0;
    if (length > 0) needed[length - 1] = id;
  }
  for (const [at, mark] of marked.entries()) {
    const place = from + at;
    if (needed[place] !== undefined) expect(mark).toBe(needed[place]);
    else if (mark !== undefined) expectOwnMark(turns, mark, messages[place]);
  }
}

function isTurnEnd({ status, event, index }: ModelRow): boolean {
  return status === 'succeeded' && endsTurn(event) && index >= 0;
}

/** After a rewrite a store may still know the snapshot of a message, but must not report a wrong one. */
function expectOwnMark(turns: readonly ModelRow[], mark: unknown, message: unknown): void {
  const turn = turns.find((each) => each.id === mark);
  expect(turn?.state.messages?.at(-1)).toEqual(message);
}
