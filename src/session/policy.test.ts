import { describe, expect, test } from 'vitest';
import { StateCandidate } from '../agent/turn/commit.ts';
import type { SnapshotEvent } from '../protocol/snapshot.ts';
import type { State } from '../protocol/state.ts';
import { always, never, on, onChange, type SnapshotPolicy } from './policy.ts';
import { fromPlainState } from './session-state.ts';

const before: State = { messages: [], custom: { n: 1 } };
const after: State = { messages: [], custom: { n: 2 } };

function candidate(
  event: SnapshotEvent,
  state: State = after,
  prevState: State | undefined = before,
) {
  return new StateCandidate({
    event,
    state: fromPlainState(state),
    prevState: prevState && fromPlainState(prevState),
    index: 3,
    turnIndex: 2,
    eventIndex: 7,
  });
}

describe('a snapshot policy', () => {
  test('always and never', () => {
    expect(always(candidate('detach'))).toBe(true);
    expect(never(candidate('turnEnd'))).toBe(false);
  });

  test('on: at the events it names', () => {
    const policy = on('turnEnd', 'invocationEnd');
    expect(policy(candidate('turnEnd'))).toBe(true);
    expect(policy(candidate('invocationEnd'))).toBe(true);
    expect(policy(candidate('toolIterationEnd'))).toBe(false);
  });

  test('onChange: at the events it names, if something has changed', () => {
    const policy = onChange('turnEnd');
    expect(policy(candidate('turnEnd'))).toBe(true);
    expect(policy(candidate('turnEnd', before))).toBe(false);
    expect(policy(candidate('invocationEnd'))).toBe(false);
    expect(onChange()(candidate('toolIterationEnd'))).toBe(true);
    expect(onChange()(candidate('toolIterationEnd', before))).toBe(false);
  });

  test('onChange: the first state is a change', () => {
    const first = new StateCandidate({
      event: 'turnEnd',
      state: fromPlainState({}),
      prevState: undefined,
      index: 0,
      turnIndex: 0,
      eventIndex: 0,
    });
    expect(first.prevState).toBeUndefined();
    expect(onChange('turnEnd')(first)).toBe(true);
  });

  test('a callback sees both states, where it stands, and which chance this is', () => {
    const seen: unknown[] = [];
    const policy: SnapshotPolicy = ({ event, state, prevState, index, turnIndex, eventIndex }) => {
      seen.push({ event, state, prevState, index, turnIndex, eventIndex });
      return eventIndex % 3 === 0;
    };
    expect(policy(candidate('turnEnd'))).toBe(false);
    expect(seen).toEqual([
      { event: 'turnEnd', state: after, prevState: before, index: 3, turnIndex: 2, eventIndex: 7 },
    ]);
  });

  test('what a policy does not look at is not made', () => {
    const untouchable = {
      ...fromPlainState(after),
      get history(): never {
        throw new Error('looked at');
      },
    };
    const unread = new StateCandidate({
      event: 'turnEnd',
      state: untouchable,
      prevState: untouchable,
      index: 0,
      turnIndex: 0,
      eventIndex: 0,
    });
    for (const policy of [always, never, on('turnEnd'), onChange('detach')]) policy(unread);
    expect(() => unread.state).toThrow('looked at');
    expect(() => unread.prevState).toThrow('looked at');
  });
});
