import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Json } from '../core/json/json.ts';
import { applyPatch, type JsonPatch } from '../core/json/patch.ts';
import type { Message } from '../protocol/message.ts';
import type { State } from '../protocol/state.ts';
import { diffStates } from './diff.ts';
import { fromPlainState } from './session-state.ts';

function text(words: string): Message {
  return { role: 'user', content: [{ text: words }] };
}

function diff(from: State, to: State) {
  return diffStates(
    { snapshotId: 'from', state: fromPlainState(from) },
    { snapshotId: 'to', state: fromPlainState(to) },
  );
}

describe('the difference of two states', () => {
  test('of the same is nothing', () => {
    const state = { messages: [text('a')], custom: { a: 1 }, artifacts: [{ parts: [] }] };
    expect(diff(state, state)).toEqual({
      from: 'from',
      to: 'to',
      messages: { added: [], removed: [] },
      custom: [],
      artifacts: [],
    });
  });

  test('messages: what is behind the common beginning', () => {
    const [a, b, c, d] = ['a', 'b', 'c', 'd'].map(text) as [Message, Message, Message, Message];
    expect(diff({ messages: [a] }, { messages: [a, b] }).messages).toEqual({
      added: [b],
      removed: [],
    });
    expect(diff({ messages: [a, b, c] }, { messages: [a, d] }).messages).toEqual({
      added: [d],
      removed: [b, c],
    });
    expect(diff({ messages: [a] }, {}).messages).toEqual({ added: [], removed: [a] });
  });

  test('messages taken off and put on turn one history into the other', () => {
    const history = fc
      .array(fc.nat(3), { maxLength: 10 })
      .map((all) => all.map((n) => text(`${n}`)));
    fc.assert(
      fc.property(history, history, (from, to) => {
        const { added, removed } = diff({ messages: from }, { messages: to }).messages;
        const common = from.slice(0, from.length - removed.length);
        expect([...common, ...removed]).toEqual(from);
        expect([...common, ...added]).toEqual(to);
        if (added.length > 0 && removed.length > 0) expect(added[0]).not.toEqual(removed[0]);
      }),
    );
  });

  test('custom state: a patch, also where there was nothing or is nothing left', () => {
    expect(diff({ custom: { a: 1, b: [1] } }, { custom: { a: 2, b: [1] } }).custom).toEqual([
      { op: 'replace', path: '/a', value: 2 },
    ]);
    expect(diff({}, { custom: { a: 1 } }).custom).toEqual([
      { op: 'replace', path: '', value: { a: 1 } },
    ]);
    expect(diff({ custom: 1 }, {}).custom).toEqual([{ op: 'replace', path: '', value: null }]);
    expect(diff({}, {}).custom).toEqual([]);
  });

  test('artifacts: by name, the unnamed by their place', () => {
    const from: State = {
      artifacts: [
        { name: 'kept', parts: [{ text: 'same' }] },
        { name: 'changed', parts: [{ text: 'one' }] },
        { name: 'gone', parts: [] },
        { parts: [{ text: 'first unnamed' }] },
      ],
    };
    const to: State = {
      artifacts: [
        { parts: [{ text: 'first unnamed!' }] },
        { name: 'changed', parts: [{ text: 'two' }] },
        { name: 'kept', parts: [{ text: 'same' }] },
        { name: 'new', parts: [] },
        { parts: [] },
      ],
    };
    const { artifacts } = diff(from, to);
    expect(artifacts.map(({ name, change }) => `${name} ${change}`).toSorted()).toEqual([
      '#0 changed',
      '#1 added',
      'changed changed',
      'gone removed',
      'new added',
    ]);
    const patch = artifacts.find(({ name }) => name === 'changed')?.patch as JsonPatch;
    expect(applyPatch(from.artifacts?.[1] as unknown as Json, patch)).toEqual(to.artifacts?.[1]);
  });
});
