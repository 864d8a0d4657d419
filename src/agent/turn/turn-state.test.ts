import { describe, expect, test } from 'vitest';
import { emptyState, type SessionState } from '../../session/session-state.ts';
import type { LoadedState, StateBase, TakenRun } from '../../store/contract/store.ts';
import {
  checkpointedAs,
  claimedAt,
  continuingFrom,
  endedElsewhere,
  endedWith,
  failedFrom,
  openedAt,
  resumedAt,
  savedAs,
  startedWith,
} from './turn-state.ts';

const stateOf = (custom: string): SessionState => ({ ...emptyState, custom });
const baseOf = (snapshotId: string): StateBase => ({
  snapshotId,
  state: stateOf(snapshotId),
  ref: undefined,
});
const listedOf = (id: string) => ({ id, state: stateOf(id) });

describe('opening', () => {
  test('a fresh session falls back to its first state, which is no snapshot', () => {
    expect(startedWith(stateOf('fresh'))).toMatchObject({
      fallbackState: stateOf('fresh'),
      fallbackSnapshotId: undefined,
      policyBase: undefined,
      nextParentId: undefined,
    });
  });

  test('a named snapshot is loaded and fallen back to, but nothing is saved on it before the claim', () => {
    const loaded = { ...baseOf('a'), snapshot: {} } as LoadedState;
    expect(openedAt(loaded)).toEqual({
      initBase: loaded,
      savedBase: undefined,
      nextParentId: undefined,
      policyBase: listedOf('a'),
      fallbackState: stateOf('a'),
      fallbackSnapshotId: 'a',
    });
  });
});

describe('claiming', () => {
  const claim = (parentId: string, listed?: false) => ({
    sessionId: 's',
    nextIndex: 1,
    parent: { snapshotId: parentId, turnIndex: 0, ...(listed === false && { listed }) },
    base: baseOf(parentId),
    listed: baseOf('a'),
  });

  test('a first turn starts from the state of the claim', () => {
    const lineage = claimedAt(startedWith(emptyState), claim('a'), stateOf('a'));
    expect(lineage).toMatchObject({
      savedBase: baseOf('a'),
      nextParentId: 'a',
      policyBase: listedOf('a'),
      fallbackState: stateOf('a'),
      fallbackSnapshotId: 'a',
    });
  });

  test('a latest state without a snapshot is the parent, but has no snapshot to fall back to', () => {
    const lineage = claimedAt(startedWith(emptyState), claim('b', false), stateOf('b'));
    expect(lineage).toMatchObject({ nextParentId: 'b', policyBase: listedOf('a') });
    expect(lineage.fallbackSnapshotId).toBeUndefined();
  });

  test('a later turn of the same invocation keeps what it falls back to', () => {
    const before = endedWith(savedAs(startedWith(emptyState), baseOf('a')), stateOf('more'));
    const lineage = claimedAt(before, claim('a'));
    expect(lineage).toEqual({ ...before, savedBase: baseOf('a'), nextParentId: 'a' });
  });
});

describe('saving', () => {
  const opened = savedAs(startedWith(emptyState), baseOf('a'), listedOf('a'));
  const ended = endedWith(opened, stateOf('a'));

  test('a snapshot becomes the parent and the policy base, and is fallen back to when the turn ends', () => {
    expect(ended).toMatchObject({ nextParentId: 'a', policyBase: listedOf('a') });
    expect(opened.fallbackSnapshotId).toBeUndefined();
    expect(ended).toMatchObject({ fallbackState: stateOf('a'), fallbackSnapshotId: 'a' });
  });

  test('a state without a snapshot becomes the parent only', () => {
    const lineage = endedWith(savedAs(ended, baseOf('b')), stateOf('b'));
    expect(lineage).toMatchObject({ nextParentId: 'b', policyBase: listedOf('a') });
    expect(lineage).toMatchObject({ fallbackState: stateOf('b'), fallbackSnapshotId: undefined });
  });

  test('a checkpoint changes what the next write builds on, and nothing else', () => {
    expect(checkpointedAs(ended, baseOf('c'))).toEqual({ ...ended, savedBase: baseOf('c') });
  });

  test('a state is hashed only if there is a snapshot to compare it with', () => {
    const history = { get: () => expect.unreachable() };
    const state = Object.defineProperty({ ...emptyState }, 'history', history);
    const lineage = endedWith(startedWith(emptyState), state);
    expect(lineage.fallbackState).toBe(state);
    expect(lineage.fallbackSnapshotId).toBeUndefined();
  });

  test('a failed turn hangs where it started, and its session falls back to before it', () => {
    const within = savedAs(ended, baseOf('within'), listedOf('within'));
    const failed = failedFrom(within, 'a');
    expect(failed).toMatchObject({ nextParentId: 'a', fallbackSnapshotId: 'a' });
  });

  test('an input of a detached run moves the fallback state, but not the snapshot', () => {
    const lineage = continuingFrom(ended, stateOf('done'));
    expect(lineage).toEqual({ ...ended, fallbackState: stateOf('done') });
  });

  test('a turn that ended elsewhere is read again', () => {
    const lineage = endedElsewhere(ended);
    expect(lineage).toEqual({ ...ended, initBase: undefined, savedBase: undefined });
  });
});

describe('resuming', () => {
  const taken = (base: string | undefined, listed?: false) =>
    ({
      ...(base !== undefined && { base: baseOf(base) }),
      claim: { parent: { snapshotId: 'a', turnIndex: 0, ...(listed === false && { listed }) } },
    }) as TakenRun;

  test('falls back to the snapshot before the run, with the state of the checkpoint', () => {
    expect(resumedAt(taken('within'), stateOf('checkpoint'))).toEqual({
      initBase: undefined,
      savedBase: baseOf('within'),
      nextParentId: 'within',
      policyBase: listedOf('within'),
      fallbackState: stateOf('checkpoint'),
      fallbackSnapshotId: 'a',
    });
  });

  test('a parent that is no snapshot is neither compared with nor fallen back to', () => {
    const lineage = resumedAt(taken('a', false), stateOf('a'));
    expect(lineage).toMatchObject({ savedBase: baseOf('a'), nextParentId: 'a' });
    expect(lineage.policyBase).toBeUndefined();
    expect(lineage.fallbackSnapshotId).toBeUndefined();
  });

  test('a run without a base hangs on its parent', () => {
    expect(resumedAt(taken(undefined), emptyState).nextParentId).toBe('a');
  });
});
