import { describe, expect, test } from 'vitest';
import type { Message } from '../protocol/message.ts';
import {
  emptyState,
  fromPlainState,
  hashState,
  toPlainState,
  withoutMark,
} from './session-state.ts';

const hi: Message = { role: 'user', content: [{ text: 'hi' }] };
const yes: Message = { role: 'model', content: [{ text: 'yes' }] };

describe('the content address of a state', () => {
  test('is the same for the same content, however it came about', () => {
    const whole = fromPlainState({ messages: [hi, yes], custom: { a: 1, b: 2 } });
    const grown = fromPlainState({ messages: [hi], custom: { b: 2, a: 1 } });
    const next = { ...grown, history: grown.history.append(whole.history.toArray(1)) };
    expect(hashState(next)).toBe(hashState(whole));
    expect(hashState(Object.freeze({ ...next }))).toBe(hashState(whole));
  });

  test('differs with each part, and tells nothing from null, and from an empty thing', () => {
    const states = [
      {},
      { messages: [hi] },
      { messages: [hi, hi] },
      { messages: [yes, hi] },
      { messages: [hi, yes] },
      { custom: null },
      { custom: {} },
      { custom: '' },
      { custom: [] },
      { artifacts: [{ parts: [] }] },
      { artifacts: [{ name: 'a', parts: [] }] },
      { artifacts: [{ parts: [] }, { parts: [] }] },
      { messages: [hi], custom: null },
    ];
    const hashes = states.map((state) => hashState(fromPlainState(state)));
    expect(new Set(hashes).size).toBe(states.length);
    expect(hashes[0]).toBe(hashState(emptyState));
    expect(hashState(fromPlainState({ artifacts: [] }))).toBe(hashes[0]);
  });

  test('is pinned, because stores keep it', () => {
    const state = fromPlainState({
      messages: [hi, yes],
      custom: { n: 1 },
      artifacts: [{ name: 'a', parts: [{ text: 'x' }] }],
    });
    expect(hashState(state)).toMatchInlineSnapshot(
      `"cb7cb2bd681aafd7784be6cf02897472d42433e2cde5910cca94fa30d143c589"`,
    );
    expect(hashState(emptyState)).toMatchInlineSnapshot(
      `"75a11da44c802486bc6f65640aa48a730f0f684c5c07a42ba3cd1735eb3fb070"`,
    );
  });
});

describe('the plain form of a state', () => {
  test('goes there and back', () => {
    const plain = {
      messages: [hi, { ...yes, metadata: { a: 1 } }],
      custom: { list: [1] },
      artifacts: [{ name: 'a', parts: [{ text: 'x' }], metadata: { b: 2 } }],
    };
    expect(toPlainState(fromPlainState(plain))).toEqual(plain);
    expect(toPlainState(emptyState, { sessionId: 's' })).toEqual({ sessionId: 's', messages: [] });
  });

  test('carries marks, which do not change what is put back', () => {
    const state = fromPlainState({ messages: [hi, { ...yes, metadata: { a: 1 } }, hi] });
    const marks = new Map([
      [0, 'one'],
      [1, 'two'],
      [9, 'nowhere'],
    ]);
    const read = toPlainState(state, { marks });
    expect(read.messages?.map((each) => each.metadata)).toEqual([
      { snapshotId: 'one' },
      { a: 1, snapshotId: 'two' },
      undefined,
    ]);
    expect(hashState(fromPlainState(read))).toBe(hashState(state));
    expect(state.history.at(0)).toEqual(hi);
  });

  test('a message with nothing but a mark in its metadata is one without metadata', () => {
    expect(withoutMark({ ...hi, metadata: { snapshotId: 'x' } })).toEqual(hi);
    expect(withoutMark({ ...hi, metadata: {} })).toEqual(hi);
    expect(withoutMark(hi)).toBe(hi);
    const other = { ...hi, metadata: { a: 1 } };
    expect(withoutMark(other)).toBe(other);
  });

  test('what is read is the caller’s, what is held is frozen', () => {
    const state = fromPlainState({
      messages: [hi],
      custom: { a: [1] },
      artifacts: [{ parts: [] }],
    });
    const read = toPlainState(state);
    read.messages?.pop();
    read.artifacts?.pop();
    expect(toPlainState(state).messages).toEqual([hi]);
    expect(toPlainState(state).artifacts).toHaveLength(1);
    expect(Object.isFrozen(state.custom)).toBe(true);
    expect(Object.isFrozen(state.history.at(0)?.content[0])).toBe(true);
  });
});
