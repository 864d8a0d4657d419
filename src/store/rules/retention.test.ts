import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RetentionPolicy } from '../contract/store.ts';
import {
  checkPolicy,
  type RetainedSession,
  type RetainedSnapshot,
  selectVictims,
} from './retention.ts';

/** Snapshots named by their index, each `[parent, what is special]`, one second apart. */
function session(
  rows: readonly (readonly [parent: number | undefined, change?: Partial<RetainedSnapshot>])[],
  change: Partial<RetainedSession> = {},
): RetainedSession {
  return {
    sessionId: 's',
    updatedAt: rows.length * 1000,
    headId: `${rows.length - 1}`,
    held: [],
    running: false,
    snapshots: rows.map(([parent, special], index) => ({
      snapshotId: `${index}`,
      parentId: parent === undefined ? undefined : `${parent}`,
      index,
      status: 'succeeded',
      event: 'turnEnd',
      updatedAt: index * 1000,
      ...special,
    })),
    ...change,
  };
}

function victims(of: RetainedSession, policy: RetentionPolicy, now = 10_000): string {
  return [...selectVictims(of, policy, now).victims].join(' ');
}

const line = (length: number) =>
  Array.from({ length }, (_, n) => [n === 0 ? undefined : n - 1] as const);

describe('retention', () => {
  test('nothing goes without a rule', () => {
    expect(victims(session(line(5)), {})).toBe('');
    expect(victims(session(line(5)), { dropSessions: true, keepLabelled: false })).toBe('');
  });

  test('by count, by age, or by either', () => {
    expect(victims(session(line(5)), { keepLast: 2 })).toBe('0 1 2');
    expect(victims(session(line(5)), { keepLast: 0 })).toBe('0 1 2 3');
    expect(victims(session(line(5)), { olderThan: 8000 })).toBe('0 1');
    expect(victims(session(line(5)), { olderThan: 8000, keepLast: 4 })).toBe('0 1');
    expect(victims(session(line(5)), { olderThan: 8000, keepLast: 1 })).toBe('0 1 2 3');
  });

  test('the head stays, however old', () => {
    expect(victims(session(line(5), { headId: '1' }), { keepLast: 1 })).toBe('0 2 3');
  });

  test('labels keep, unless told otherwise; sessions are kept by name', () => {
    const named = session([[undefined], [0, { label: 'x' }], [1], [2]]);
    expect(victims(named, { keepLast: 1 })).toBe('0 2');
    expect(victims(named, { keepLast: 1, keepLabelled: false })).toBe('0 1 2');
    expect(victims(named, { keepLast: 1, keepSessions: ['s'] })).toBe('');
  });

  test('survivors hang on the nearest ancestor that stays', () => {
    const { reparented } = selectVictims(
      session([[undefined], [0, { label: 'x' }], [1], [2], [3]]),
      { keepLast: 1 },
      0,
    );
    expect([...reparented]).toEqual([
      ['1', undefined],
      ['4', '1'],
    ]);
  });

  test('a running snapshot stays, with the snapshot of its claim and its base', () => {
    const running = session([[undefined], [0], [0], [1, { status: 'pending' }], [2]], {
      held: ['1', '0'],
      running: true,
    });
    expect(victims(running, { keepLast: 0 })).toBe('2');
  });

  test('what never ended goes like anything else', () => {
    expect(victims(session([[undefined], [0, { status: 'expired' }], [0]]), { keepLast: 1 })).toBe(
      '0 1',
    );
  });

  test('a failed one that stays keeps what it hangs on', () => {
    const failed = { status: 'failed', label: 'x' } as const;
    expect(victims(session([[undefined], [0], [1, failed], [0], [3]]), { keepLast: 0 })).toBe(
      '0 3',
    );
  });

  test('an open interrupt stays; an answered one goes, but never its answer alone', () => {
    const asked = { finishReason: 'interrupted' } as const;
    expect(victims(session([[undefined], [0, asked], [0], [2]]), { keepLast: 0 })).toBe('0 2');
    expect(victims(session([[undefined, asked], [0], [1]]), { keepLast: 0 })).toBe('0 1');
    const kept = { ...asked, label: 'x' };
    const branches = session([[undefined, kept], [0], [0], [0], [3]]);
    expect(victims(branches, { keepLast: 0 })).toBe('2 3');
  });

  test('S489: an edit of an interrupt that was answered is no open one, and stays only with what it edits and the answer', () => {
    const asked = { finishReason: 'interrupted' } as const;
    const edit = { ...asked, event: 'edit' } as const;
    const labelled = { ...edit, label: 'x' };
    // The first edit is answered by 3, so that the second one is as well.
    const rows = [[undefined, asked], [0, edit], [0, edit], [1], [3]] as const;
    expect(victims(session(rows), { keepLast: 0 })).toBe('0 1 2 3');
    const kept = [[undefined, asked], [0, edit], [0, labelled], [1], [3]] as const;
    expect(victims(session(kept), { keepLast: 0 })).toBe('1');
    const open = [[undefined, asked], [0, edit], [0, labelled], [undefined]] as const;
    expect(victims(session(open), { keepLast: 0 })).toBe('');
  });

  test('an unlisted head is not counted, and is moved up like any other', () => {
    const latest = session([[undefined], [0], [1, { index: -1 }]]);
    expect(victims(latest, { keepLast: 1 })).toBe('0');
    const { reparented } = selectVictims(latest, { keepLast: 0 }, 0);
    expect([...reparented]).toEqual([['2', undefined]]);
  });

  test('a session of which only an old head is left goes when asked', () => {
    const drop = { olderThan: 1000, dropSessions: true };
    const isDropped = (of: RetainedSession, policy: RetentionPolicy = drop): boolean =>
      selectVictims(of, policy, 100_000).dropSession;
    expect(isDropped(session(line(3)))).toBe(true);
    expect(isDropped(session([], { headId: undefined }))).toBe(true);
    expect(isDropped(session(line(3)), { olderThan: 1000 })).toBe(false);
    expect(isDropped(session(line(3)), { keepLast: 1, dropSessions: true })).toBe(false);
    expect(isDropped(session(line(3)), { olderThan: 200_000, dropSessions: true })).toBe(false);
    expect(isDropped(session(line(3), { running: true }))).toBe(false);
    expect(isDropped(session(line(3), { updatedAt: 99_500 }))).toBe(false);
    expect(isDropped(session([[undefined, { label: 'x' }]]))).toBe(false);
    expect(
      isDropped(session([[undefined, { label: 'x' }]]), { ...drop, keepLabelled: false }),
    ).toBe(true);
    expect(isDropped(session([[undefined, { finishReason: 'interrupted' }]]))).toBe(false);
    expect(isDropped(session([[undefined], [undefined, { label: 'x' }], [0]]))).toBe(false);
  });

  test('a policy that cannot be meant is refused', () => {
    for (const bad of [{ keepLast: -1 }, { keepLast: 0.5 }, { olderThan: Number.NaN }]) {
      expect(() => checkPolicy(bad)).toThrow(
        expect.objectContaining({ status: 'INVALID_ARGUMENT' }),
      );
    }
    checkPolicy({ keepLast: 0, olderThan: Number.POSITIVE_INFINITY });
  });

  test('whatever the tree, what stays hangs together and nothing that must stay goes', () => {
    const row = fc.record({
      parent: fc.option(fc.nat(), { nil: undefined, freq: 8 }),
      status: fc.constantFrom(
        'succeeded',
        'succeeded',
        'succeeded',
        'failed',
        'pending',
        'expired',
      ),
      finishReason: fc.constantFrom('stop', 'interrupted'),
      label: fc.option(fc.constant('x'), { nil: undefined, freq: 5 }),
    });
    const policy = fc.record({ keepLast: fc.nat(5), keepLabelled: fc.boolean() });
    fc.assert(
      fc.property(fc.array(row, { maxLength: 15 }), fc.nat(), policy, (rows, head, rule) => {
        const good: number[] = [];
        const tree = rows.map(({ parent, ...rest }, place) => {
          const on = parent === undefined ? undefined : good[parent % Math.max(1, good.length)];
          if (rest.status === 'succeeded') good.push(place);
          return [on, rest] as const;
        });
        const headAt = good[head % Math.max(1, good.length)];
        const of = session(tree, { headId: headAt === undefined ? undefined : `${headAt}` });
        const { victims: gone, reparented } = selectVictims(of, rule, 0);
        if (of.headId !== undefined) expect(gone.has(of.headId)).toBe(false);
        for (const each of of.snapshots) {
          if (gone.has(each.snapshotId)) {
            expect(each.status).not.toBe('pending');
            if (rule.keepLabelled) expect(each.label).toBeUndefined();
            continue;
          }
          const parent = reparented.has(each.snapshotId)
            ? reparented.get(each.snapshotId)
            : each.parentId;
          if (parent !== undefined) expect(gone.has(parent)).toBe(false);
          if (each.status !== 'succeeded') expect(parent).toBe(each.parentId);
        }
        expect(of.snapshots.length - gone.size).toBeGreaterThanOrEqual(
          Math.min(rule.keepLast, of.snapshots.length),
        );
      }),
    );
  });

  test('S162: a snapshot within a turn that failed is no answer of an interrupt', () => {
    const asked = [undefined, { finishReason: 'interrupted' }] as const;
    const within = [0, { event: 'toolIterationEnd' }] as const;
    const aside = [undefined, {}] as const;
    const keepLast = 1;
    expect(victims(session([asked, within, aside]), { keepLast })).toBe('1');
    // The answer hangs on the snapshot within its turn, and stays with what it answers.
    const answered = session([asked, within, [1], aside], { headId: '3' });
    expect(victims(answered, { keepLast })).toBe('0 1 2');
    const labelled = [undefined, { finishReason: 'interrupted', label: 'x' }] as const;
    expect(victims(session([labelled, within, [1], aside]), { keepLast })).toBe('1');
  });
});
