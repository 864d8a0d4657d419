import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { sha256 } from '../core/json/hash.ts';
import { canonicalJson, toJson } from '../core/json/json.ts';
import type { Message } from '../protocol/message.ts';
import { History, messageHash } from './history.ts';

function message(text: string): Message {
  return toJson({ role: 'user', content: [{ text }] }, 'message') as unknown as Message;
}

const [a, b, c, d] = [message('a'), message('b'), message('c'), message('d')];

/** The chain as it is defined, worked out from nothing. */
function chainOf(messages: readonly Message[]): string {
  return messages.reduce((chain, each) => sha256(chain + sha256(canonicalJson(each))), '');
}

describe('a history', () => {
  test('is a version: appending makes a new one and leaves the old one as it was', () => {
    const one = History.of([a]);
    const two = one.append([b, c]);
    expect(one.messages).toEqual([a]);
    expect(two.messages).toEqual([a, b, c]);
    expect(History.empty.messages).toEqual([]);
    expect(two.append([])).toBe(two);
  });

  test('two continuations of the same version do not see each other', () => {
    const one = History.of([a]);
    const left = one.append([b]);
    const right = one.append([c]);
    expect(left.append([d]).messages).toEqual([a, b, d]);
    expect(right.messages).toEqual([a, c]);
    expect(left.messages).toEqual([a, b]);
    expect(left.chain()).not.toBe(right.chain());
  });

  test('gives a frozen array, made once, and plain ones that are the caller’s own', () => {
    const history = History.of([a, b]);
    expect(history.messages).toBe(history.messages);
    expect(Object.isFrozen(history.messages)).toBe(true);
    history.toArray().push(c);
    expect(history.toArray(1)).toEqual([b]);
    expect(history.length).toBe(2);
  });

  test('is read from both ends', () => {
    const history = History.of([a, b, c]).truncate(2);
    expect([history.at(0), history.at(1), history.at(2)]).toEqual([a, b, undefined]);
    expect([history.at(-1), history.at(-2), history.at(-3)]).toEqual([b, a, undefined]);
  });

  test('continuing a truncated version does not touch the longer one', () => {
    const long = History.of([a, b, c]);
    expect(long.truncate(1).append([d]).messages).toEqual([a, d]);
    expect(long.truncate(0).append([d]).messages).toEqual([d]);
    expect(long.messages).toEqual([a, b, c]);
    expect(long.truncate(5)).toBe(long);
  });

  test('knows a beginning by its content, also in another log', () => {
    const base = History.of([a, b]);
    expect(base.isPrefixOf(base.append([c]))).toBe(true);
    expect(base.isPrefixOf(History.of([message('a'), message('b'), c]))).toBe(true);
    expect(base.isPrefixOf(History.of([b, a, c]))).toBe(false);
    expect(base.isPrefixOf(base.truncate(1))).toBe(false);
    expect(History.empty.isPrefixOf(base)).toBe(true);
  });

  test('two have in common what both begin with', () => {
    const base = History.of([a, b, c]);
    expect(base.commonLength(History.of([message('a'), b, d, c]))).toBe(2);
    expect(base.commonLength(base.truncate(2).append([d]))).toBe(2);
    expect(base.commonLength(base.truncate(1))).toBe(1);
    expect(base.commonLength(History.of([d]))).toBe(0);
    expect(base.commonLength(History.empty)).toBe(0);
  });

  test('a message is hashed once, however many versions hold it', () => {
    expect(messageHash(a)).toBe(sha256(canonicalJson(a)));
    expect(messageHash(message('a'))).toBe(messageHash(a));
  });

  test('whatever is done to it, each version holds what a plain array would, and its chain is that of its messages', () => {
    const step = fc.record({
      from: fc.nat(100),
      kind: fc.constantFrom('append', 'truncate', 'replace'),
      count: fc.nat(4),
      early: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const pool = [a, b, c, d];
        const versions = [{ history: History.empty, plain: [] as readonly Message[] }];
        for (const [n, { from, kind, count, early }] of steps.entries()) {
          const { history, plain } = versions[from % versions.length] ?? {
            history: History.empty,
            plain: [],
          };
          const added = Array.from({ length: count }, (_, i) => pool[(n + i) % 4] as Message);
          if (kind === 'append') {
            versions.push({ history: history.append(added), plain: [...plain, ...added] });
          } else if (kind === 'truncate') {
            versions.push({ history: history.truncate(count), plain: plain.slice(0, count) });
          } else {
            const next = [...plain.slice(0, count), ...added];
            versions.push({ history: history.replace(next), plain: next });
          }
          // Asking early fills the chain of a log that is appended to later.
          if (early) versions.at(-1)?.history.chain();
        }
        for (const { history, plain } of versions) {
          expect(history.length).toBe(plain.length);
          expect(history.messages).toEqual(plain);
          expect(history.chain()).toBe(chainOf(plain));
          const woken = History.wake(history.rest());
          expect(woken.chain()).toBe(chainOf(plain));
          expect(woken.messages).toEqual(plain);
          expect(woken.append([a]).chain()).toBe(chainOf([...plain, a]));
        }
      }),
    );
  });

  test('at rest, a continuation holds only its new messages', () => {
    const one = History.of([a, b]);
    const two = one.append([c]);
    const [first, second] = [one.rest(), two.rest()];
    expect(second?.before).toBe(first);
    expect(two.rest()).toBe(second);
    expect(one.truncate(1).append([d]).rest()?.before).not.toBe(first);
    expect(one.append([d]).rest()?.before).toBe(first);
    expect(History.wake(second).append([d]).rest()?.before).toBe(second);
    expect(History.empty.rest()).toBeUndefined();
    expect(History.wake(undefined)).toBe(History.empty);
  });

  test('of a message at rest that is more than a text, everything is kept', () => {
    const messages = [
      { role: 'user', content: [{ text: 'a', metadata: { b: 1 } }] },
      { role: 'user', content: [{ text: 'a' }], metadata: { c: 2 } },
      { role: 'tool', content: [{ toolResponse: { name: 't', output: 1 } }] },
      { role: 'user', content: [{ text: 'a' }, { text: 'b' }] },
      { role: 'model', content: [] },
      { role: 'system', content: [{ text: '' }] },
    ].map((each) => toJson(each, 'message') as unknown as Message);
    const history = History.of(messages);
    const woken = History.wake(history.rest());
    expect(woken.messages).toEqual(messages);
    expect(woken.messages.every((each) => Object.isFrozen(each.content[0] ?? each))).toBe(true);
    expect(History.of(woken.toArray()).chain()).toBe(history.chain());
  });

  test('many that were at rest share what they have in common when they are woken together', () => {
    const one = History.of([a, b]);
    const rests = [one.rest(), one.append([c]).rest(), one.append([d]).rest()];
    const known = new Map();
    const [first, left, right] = rests.map((rest) => History.wake(rest).wakeAmong(known));
    expect(left?.messages).toEqual([a, b, c]);
    expect(right?.messages).toEqual([a, b, d]);
    expect(left?.at(0)).toBe(first?.at(0));
    expect(right?.at(1)).toBe(first?.at(1));
    expect(right?.chain()).toBe(chainOf([a, b, d]));
    expect(one.wakeAmong(known)).toBe(one);
  });

  test('a turn costs what is new: earlier messages are not read again', () => {
    let reads = 0;
    const counted = (): Message =>
      new Proxy(message('x'), {
        get(target, key, receiver) {
          reads++;
          return Reflect.get(target, key, receiver);
        },
      });
    let history = History.empty;
    const costs = new Set<number>();
    for (let n = 0; n < 200; n++) {
      reads = 0;
      const before = history;
      history = history.append([counted(), counted()]);
      history.chain();
      expect(before.isPrefixOf(history)).toBe(true);
      costs.add(reads);
    }
    expect(costs.size).toBe(1);
  });
});
