import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { toJson } from '../core/json/json.ts';
import type { Message } from '../protocol/message.ts';
import { textMessage } from '../protocol/parse.ts';
import type { Link } from './compact-history.ts';
import { historyDelta } from './delta.ts';
import { History, type HistoryPiece } from './history.ts';
import { KnownChains } from './known-chains.ts';
import { type MessagePool, RestingHistory } from './resting-history.ts';

const image = { media: { url: 'https://example.com/a.png' } };
const [a, b, c, d] = [
  textMessage('user', 'a'),
  textMessage('model', 'a'),
  textMessage('user', 'c'),
  toJson({ role: 'user', content: [{ text: 'd' }, image] }, 'message') as unknown as Message,
];

function chainOf(history: History, known = new KnownChains()): string {
  const steps = history.rechainInSteps(known, 2);
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

describe('a history that stays at rest', () => {
  test.each([
    ['in the heap', () => RestingHistory.empty],
    ['in a pool', () => RestingHistory.in(poolOfJson())],
  ])('whatever is done to it, %s, it is what one that is awake would be', (_, empty) => {
    const pool = [a, b, c, d];
    const step = fc.record({
      from: fc.nat(100),
      kind: fc.constantFrom('append', 'truncate', 'rebuild'),
      count: fc.nat(4),
      places: fc.tuple(fc.nat(6), fc.nat(6)),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 25 }), (steps) => {
        const versions: { resting: History; awake: History }[] = [
          { resting: empty(), awake: History.empty },
        ];
        for (const [n, { from, kind, count, places }] of steps.entries()) {
          const { resting, awake } = versions[from % versions.length] as (typeof versions)[0];
          const added = Array.from({ length: count }, (_, i) => pool[(n + i) % 4] as Message);
          const [first, last] = places.toSorted((x, y) => x - y).map((x) => x % (awake.length + 1));
          const pieces: HistoryPiece[] = [
            { kind: 'kept', from: 0, to: Math.min(count, awake.length) },
            { kind: 'new', messages: added },
            { kind: 'kept', from: Math.min(first ?? 0, last ?? 0), to: last ?? 0 },
          ];
          const change = (history: History): History => {
            if (kind === 'append') return history.append(added);
            return kind === 'truncate' ? history.truncate(count) : history.rebuild(pieces);
          };
          versions.push({ resting: change(resting), awake: change(awake) });
        }
        const known = new KnownChains();
        for (const { resting, awake } of versions) {
          expect(resting).toBeInstanceOf(RestingHistory);
          expect(resting.length).toBe(awake.length);
          expect([...resting.from(1)]).toEqual(awake.toArray(1));
          expect(resting.slice(0, 3)).toEqual(awake.slice(0, 3));
          expect(chainOf(resting, known)).toBe(awake.chain());
          for (const other of versions) {
            expect(resting.isPrefixOf(other.resting)).toBe(awake.isPrefixOf(other.awake));
            expect(resting.commonLength(other.resting)).toBe(awake.commonLength(other.awake));
            expect(resting.commonLength(other.awake)).toBe(awake.commonLength(other.awake));
          }
        }
        // Last, because it wakes them.
        for (const { resting, awake } of versions) {
          expect(resting.messages).toEqual(awake.messages);
          expect(History.wake(resting.rest()).messages).toEqual(awake.messages);
        }
      }),
    );
  });

  test.each([
    ['in the heap', RestingHistory.empty],
    ['in a pool', RestingHistory.in(poolOfJson())],
  ])('messages that are kept elsewhere, %s, are found again', (_, empty) => {
    const base = empty.append([a, b, c]).append([a, d]);
    const next = base.rebuild([
      { kind: 'kept', from: 2, to: 5 },
      { kind: 'new', messages: [b] },
    ]);
    expect(next.messages).toEqual([c, a, d, b]);
    expect(historyDelta(base, next)).toEqual({
      kind: 'rewrite',
      pieces: [
        { kind: 'kept', from: 2, to: 5 },
        { kind: 'new', messages: [b] },
      ],
    });
  });

  test('a message whose text is none stays as it was read', () => {
    const damaged = { role: 'model', content: [{ text: 5 }] } as unknown as Message;
    const history = RestingHistory.empty.append([a, damaged]);
    expect([...history.from(0)]).toEqual([a, damaged]);
  });

  test('what it begins with is shared, and hashed once', () => {
    const base = RestingHistory.empty.append([a, b, c]);
    const known = new SeenChains();
    chainOf(base, known);
    const edited = base.rebuild([
      { kind: 'kept', from: 0, to: 3 },
      { kind: 'new', messages: [d] },
    ]);
    for (const next of [base.append([a]), edited]) {
      expect(chainOf(next, known)).toBe(History.of(next.toArray()).chain());
      expect(known.last).toEqual({ length: 4, from: 3 });
    }
  });

  test('of a long path few chains are remembered, and a branch costs at most 64 messages more', () => {
    const known = new SeenChains();
    const versions: RestingHistory[] = [RestingHistory.empty];
    for (let turn = 1; turn <= 1000; turn++) {
      const version = (versions.at(-1) as RestingHistory).append([a, b]);
      chainOf(version, known);
      expect(known.last).toEqual({ length: 2 * turn, from: 2 * turn - 2 });
      versions.push(version);
    }
    expect(known.links.filter((link) => known.get(link) !== undefined)).toHaveLength(31 + 256);
    for (const version of versions.filter((_, turn) => turn % 37 === 0)) {
      const branch = version.append([c]);
      expect(chainOf(branch, known)).toBe(History.of(branch.toArray()).chain());
      expect(known.last.from).toBeGreaterThanOrEqual(version.length - 64);
    }
    known.clear();
    chainOf(versions[9] as RestingHistory, known);
    expect(known.last).toEqual({ length: 18, from: 0 });
  });
});

/** A pool that has texts of JSON. */
function poolOfJson(): MessagePool {
  const texts: string[] = [];
  return {
    add: (content) => texts.push(JSON.stringify(content)) - 1,
    read: (place) => toJson(JSON.parse(texts[place] as string), 'message') as never,
  };
}

/** Chains that tell what was added. */
class SeenChains extends KnownChains {
  readonly links: Link[] = [];
  last = { length: 0, from: 0 };

  override add(link: Link, chain: string, path: { length: number; from: number }): void {
    this.links.push(link);
    this.last = path;
    super.add(link, chain, path);
  }
}
