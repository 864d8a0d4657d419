import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isWaymarkError } from '../../core/error.ts';
import { emptyState } from '../../session/session-state.ts';
import type { CommitWrite } from '../contract/store.ts';
import { type CommitDecision, type CommitFacts, decideCommit } from './decide-commit.ts';

const id = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
const runId = id(1);

/** The rows of a session; some listed, one of them perhaps the unlisted head. */
const snapshot = fc.record({
  key: fc.integer({ min: 1, max: 4 }),
  isListed: fc.boolean(),
  parent: fc.option(fc.integer({ min: 10, max: 12 })),
});
const status = fc.constantFrom('succeeded' as const, 'failed' as const, 'aborted' as const);
const facts: fc.Arbitrary<CommitFacts<number>> = fc.record({
  runId: fc.constant(runId),
  sessionId: fc.constant('s'),
  own: fc.option(
    fc.record({
      key: fc.constant(9),
      index: fc.nat(20),
      parent: fc.option(fc.integer({ min: 10, max: 12 })),
      claimedFrom: fc.option(fc.integer({ min: 10, max: 12 })),
    }),
  ),
  start: fc.option(fc.integer({ min: 1, max: 4 })),
  inputsDone: fc.nat(5),
  head: fc.option(fc.record({ key: fc.integer({ min: 1, max: 4 }), isListed: fc.boolean() })),
  nextIndex: fc.nat(50),
  parent: fc.option(
    fc
      .tuple(snapshot, fc.boolean(), fc.oneof(status, fc.constant('pending' as const)))
      .map(([row, inSession, its]) => ({ ...row, inSession, status: its })),
  ),
  isTaken: fc.boolean(),
});
const write: fc.Arbitrary<CommitWrite> = fc.record(
  {
    snapshotId: fc.constantFrom(runId, id(2), 'not an id'),
    parentId: fc.constant(id(3)),
    turnIndex: fc.nat(9),
    event: fc.constantFrom(
      ...(['turnEnd', 'toolIterationEnd', 'detach', 'edit'] satisfies CommitWrite['event'][]),
    ),
    status,
    stateHash: fc.constant(''),
    state: fc.constant(emptyState),
    listed: fc.boolean(),
    end: fc.boolean(),
  },
  { requiredKeys: ['snapshotId', 'turnIndex', 'event', 'status', 'stateHash', 'state', 'end'] },
);

/** The decision, or the refusal. */
function attempt(known: CommitFacts<number>, given: CommitWrite) {
  try {
    return decideCommit(known, given);
  } catch (error) {
    if (isWaymarkError(error)) return error;
    throw error;
  }
}

/** Checks what holds for every commit that is accepted. */
function forAccepted(
  check: (decision: CommitDecision<number>, known: CommitFacts<number>, given: CommitWrite) => void,
): void {
  fc.assert(
    fc.property(facts, write, (known, given) => {
      const decided = attempt(known, given);
      if (!isWaymarkError(decided)) check(decided, known, given);
    }),
    { numRuns: 2000 },
  );
}

test('indexes are given out once and without a gap', () => {
  forAccepted(({ row, index, listHeadAs, nextIndex }, known) => {
    const given = [listHeadAs, row === null ? index : null].filter((each) => each !== null);
    expect(given).toEqual(given.map((_, at) => known.nextIndex + at));
    expect(nextIndex).toBe(known.nextIndex + given.length);
  });
});

test('a snapshot that did not succeed moves nothing but the run', () => {
  forAccepted((decision, _, { status: its }) => {
    if (its === 'succeeded') return;
    expect(decision).toMatchObject({
      movesHead: false,
      movesBranchEnd: false,
      replaces: null,
      listHeadAs: null,
    });
    expect(decision.index).not.toBeNull();
  });
});

test('a snapshot within a turn never moves the head', () => {
  forAccepted(({ movesHead, replaces }, _, { event, end, status: its }) => {
    if (event === 'toolIterationEnd' && !end) {
      expect({ movesHead, replaces }).toEqual({ movesHead: false, replaces: null });
    } else expect(movesHead).toBe(its === 'succeeded');
  });
});

test('an unlisted head is replaced by a turn that continues from it and listed before anything else moves on', () => {
  forAccepted((decision, { head, start, parent }, { event }) => {
    const { listHeadAs, replaces, movesHead, movesBranchEnd } = decision;
    const isNext = head !== null && (head.key === start || head.key === parent?.key);
    const isReplaced = isNext && event !== 'edit';
    const isUnlisted = head !== null && !head.isListed;
    expect(replaces).toBe(isUnlisted && isReplaced && movesHead ? head.key : null);
    expect(listHeadAs !== null).toBe(isUnlisted && !isReplaced && movesBranchEnd);
  });
});

test('a new snapshot hangs on a listed one of its session that succeeded', () => {
  forAccepted((decision, { parent, head }, { parentId }) => {
    if (decision.row !== null) return;
    if (parentId === undefined) return;
    expect(parent).toMatchObject({ inSession: true, status: 'succeeded' });
    const isListedNow = decision.listHeadAs !== null && parent?.key === head?.key;
    expect(decision.parent).toBe(parent?.isListed || isListedNow ? parent?.key : parent?.parent);
  });
});

test('a detached run ends with its own row, which keeps its index', () => {
  forAccepted(({ row, index, parent, createdAt }, { own }, { end, snapshotId, status: its }) => {
    expect(row).toBe(own !== null && end ? own.key : null);
    expect(createdAt).toBe(snapshotId === runId ? 'claim' : 'commit');
    if (row === null || own === null) return;
    expect(index).toBe(own.index);
    expect(parent).toBe(its === 'succeeded' ? own.parent : own.claimedFrom);
  });
});

test('a run ends when asked to, and else counts its inputs', () => {
  forAccepted(({ run, dropsCheckpoint }, known, { end, status: its, event }) => {
    const { inputsDone, parent, start } = known;
    expect(dropsCheckpoint).toBe(end || (its === 'succeeded' && run !== 'stays'));
    if (end) expect(run).toBe('ends');
    else if (its !== 'succeeded') expect(run).toBe('stays');
    else if (event === 'edit') {
      // What others changed before its turn: it has taken no input, and continues from there only if it starts there.
      const isStart = start !== null && parent?.key === start;
      expect(run).toEqual(isStart ? { inputsDone, midTurn: false } : 'stays');
    } else {
      const midTurn = event === 'toolIterationEnd';
      expect(run).toEqual({ inputsDone: inputsDone + (midTurn ? 0 : 1), midTurn });
    }
  });
});

test('refusals come in a fixed order', () => {
  const known: CommitFacts<number> = {
    runId,
    sessionId: 's',
    own: { key: 9, index: 0, parent: null, claimedFrom: null },
    start: null,
    inputsDone: 0,
    head: null,
    nextIndex: 1,
    parent: null,
    isTaken: true,
  };
  const given: CommitWrite = {
    snapshotId: 'x',
    parentId: id(3),
    turnIndex: 0,
    event: 'turnEnd',
    status: 'failed',
    listed: false,
    stateHash: '',
    state: emptyState,
    end: true,
  };
  const refused = (facts: CommitFacts<number>, its: CommitWrite): unknown => {
    const decided = attempt(facts, its);
    return isWaymarkError(decided) ? `${decided.status}: ${decided.message}` : decided;
  };
  expect(refused(known, given)).toMatch('INVALID_ARGUMENT: "x" is not a snapshot id');
  const named = { ...given, snapshotId: id(2) };
  expect(refused(known, named)).toMatch('INVALID_ARGUMENT: A failed snapshot is always listed');
  const { listed: _, ...listed } = named;
  expect(refused(known, listed)).toMatch('INVALID_ARGUMENT: A detached run ends with its own');
  const attached = { ...known, own: null };
  expect(refused(attached, listed)).toMatch('ALREADY_EXISTS');
  expect(refused({ ...attached, isTaken: false }, listed)).toMatch('FAILED_PRECONDITION');
});
