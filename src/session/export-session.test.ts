import { describe, expect, test } from 'vitest';
import type { Message } from '../protocol/message.ts';
import type { SessionInfo } from '../protocol/session.ts';
import type { Snapshot } from '../protocol/snapshot.ts';
import { type ExportRow, toSessionExport } from './export-session.ts';
import { fromSessionExport, renewIds } from './import-session.ts';
import { fromPlainState, hashState, type SessionState } from './session-state.ts';

const time = '2026-01-01T00:00:00.000Z';
const idOf = (n: number): string => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`;
const text = (words: string): Message => ({ role: 'user', content: [{ text: words }] });

function row(n: number, parent: number | undefined, state: SessionState): ExportRow {
  const snapshot: Snapshot = {
    snapshotId: idOf(n),
    sessionId: 's',
    ...(parent === undefined ? {} : { parentId: idOf(parent) }),
    index: n,
    turnIndex: n,
    event: 'turnEnd',
    status: 'succeeded',
    createdAt: time,
    updatedAt: time,
    stateHash: hashState(state),
    orphaned: false,
  };
  return { snapshot, state };
}

function info(head: number | undefined): SessionInfo {
  return {
    sessionId: 's',
    agent: 'a',
    ...(head === undefined ? {} : { headId: idOf(head) }),
    turnCount: 1,
    createdAt: time,
    updatedAt: time,
    running: 'is left out',
  };
}

/** States that were loaded one by one: nothing is shared but content. */
const fresh = (...words: string[]): SessionState =>
  fromPlainState({ messages: words.map(text), custom: { words: words.length } });

describe('a session document', () => {
  test('comes back as it went, from states that share nothing in memory', async () => {
    const rows = [
      row(0, undefined, fresh('a')),
      row(1, 0, fresh('a', 'b', 'c')),
      row(2, 1, fresh('b', 'c', 'summary', 'a', 'b')),
      row(3, 0, fresh('a', 'x')),
      row(4, 2, fresh()),
    ];
    const document = await toSessionExport(info(4), rows);
    const read = fromSessionExport(JSON.parse(JSON.stringify(document)));
    expect(read.snapshots.map((each) => hashState(each.state))).toEqual(
      rows.map((each) => each.snapshot.stateHash),
    );
    expect(read.snapshots.map((each) => each.snapshot.parentId)).toEqual(
      rows.map((each) => each.snapshot.parentId),
    );
    expect(read.session).toEqual({ ...info(4), running: undefined });
    expect(Object.keys(document.content.messages ?? {})).toHaveLength(5);
  });

  test('grows with the content, not with its square', async () => {
    const sizeOf = async (turns: number, window: number): Promise<number> => {
      const words: string[] = [];
      const rows = Array.from({ length: turns }, (_, n) => {
        words.push(`user ${n}`, `model ${n}`);
        return row(n, n === 0 ? undefined : n - 1, fresh(...words.slice(-window)));
      });
      return JSON.stringify(await toSessionExport(info(turns - 1), rows)).length;
    };
    for (const window of [10_000, 20]) {
      expect(await sizeOf(200, window)).toBeLessThan(2.3 * (await sizeOf(100, window)));
    }
  });

  test('takes rows as they come from a database', async () => {
    async function* rows() {
      yield row(0, undefined, fresh('a'));
      yield row(1, 0, fresh('a', 'b'));
    }
    const document = await toSessionExport(info(1), rows());
    expect(document.snapshots).toHaveLength(2);
  });

  test('new ids keep the tree and the head', async () => {
    const rows = [row(0, undefined, fresh('a')), row(1, 0, fresh('b'))];
    const read = fromSessionExport(await toSessionExport(info(1), rows));
    let n = 10;
    const renewed = renewIds(read, () => idOf(n++));
    expect(renewed.session.headId).toBe(idOf(11));
    expect(
      renewed.snapshots.map(({ snapshot }) => [snapshot.snapshotId, snapshot.parentId]),
    ).toEqual([
      [idOf(10), undefined],
      [idOf(11), idOf(10)],
    ]);
  });

  test('that does not hang together is refused', async () => {
    const state = fresh('a');
    const first = row(0, undefined, state);
    const second = row(1, 0, fresh('a', 'b'));
    const faults: [readonly ExportRow[], SessionInfo][] = [
      [[second], info(1)],
      [[first, first], info(0)],
      [[first], info(1)],
      [[row(1, undefined, state), row(0, 1, state)], info(0)],
      [[{ ...first, snapshot: { ...first.snapshot, index: -1 } }, second], info(1)],
      [[{ ...first, snapshot: { ...first.snapshot, status: 'failed' } }], info(0)],
      [[{ ...first, snapshot: { ...first.snapshot, status: 'pending' } }], info(undefined)],
      [[{ ...first, snapshot: { ...first.snapshot, snapshotId: '../x' } }], info(undefined)],
      [[{ ...first, snapshot: { ...first.snapshot, createdAt: 'once' } }], info(0)],
      [[first], { ...info(0), sessionId: '' }],
    ];
    for (const [rows, session] of faults) {
      const document = await toSessionExport(session, rows);
      expect(() => fromSessionExport(document)).toThrow(
        expect.objectContaining({ status: 'INVALID_ARGUMENT' }),
      );
    }
  });

  test('that lost something is refused as damaged', async () => {
    const rows = [row(0, undefined, fresh('a')), row(1, 0, fresh('a', 'b'))];
    const document = await toSessionExport(info(1), rows);
    const { content, snapshots } = document;
    const [first = {}, second = {}] = snapshots;
    const damaged = [
      { ...document, content: { ...content, messages: {} } },
      { ...document, content: { ...content, custom: {} } },
      { ...document, snapshots: [{ ...first, messages: [] }, second] },
      { ...document, snapshots: [first, { ...second, messages: [[0, 9]] }] },
      { ...document, snapshots: [first, { ...second, messages: [[-1, 1]] }] },
      { ...document, snapshots: [first, { ...second, custom: first.custom }] },
    ];
    for (const each of damaged) {
      expect(() => fromSessionExport(each)).toThrow(
        expect.objectContaining({ status: 'DATA_LOSS' }),
      );
    }
  });
});
