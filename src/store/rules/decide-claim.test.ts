import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isWaymarkError, type WaymarkError } from '../../core/error.ts';
import { type ClaimRequest, type RunMode, requestTtl } from '../contract/store.ts';
import type { RequestFact } from './decide-claim.ts';
import {
  type ClaimDecision,
  type ClaimFacts,
  decideClaim,
  type StartFact,
  toClaim,
} from './decide-claim.ts';
import { type HolderFact, isHolder } from './holder.ts';

const id = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
const now = 2 * requestTtl;

const mode = fc.constantFrom<RunMode>('attached', 'accepted', 'detached');
const holder: fc.Arbitrary<HolderFact<string>> = fc.record({
  key: fc.constantFrom('run a', 'run b'),
  runId: fc.constant(id(7)),
  mode,
  heartbeatAt: fc.integer({ min: now - 20, max: now }),
  ttl: fc.nat(20),
});
const start: fc.Arbitrary<StartFact<number>> = fc.record({
  key: fc.integer({ min: 1, max: 3 }),
  index: fc.nat(9),
  isListed: fc.boolean(),
  parent: fc.constant(null),
  snapshotId: fc.integer({ min: 1, max: 3 }).map(id),
  turnIndex: fc.nat(9),
  finishReason: fc.constantFrom(undefined, 'stop' as const, 'interrupted' as const),
  totals: fc.constantFrom(undefined, { tokens: 1, toolCalls: 0 }),
  isAnswered: fc.boolean(),
});
const requestFact: fc.Arbitrary<RequestFact<string>> = fc.record({
  runId: fc.constant(id(8)),
  sessionId: fc.option(fc.constant('other')),
  digest: fc.constantFrom('same', 'different'),
  at: fc.constantFrom(now - requestTtl, now - 1),
  hasReceipt: fc.boolean(),
  status: fc.constantFrom(null, 'pending' as const, 'succeeded' as const, 'failed' as const),
  run: fc.option(holder),
});
const facts: fc.Arbitrary<ClaimFacts<number, string>> = fc.record({
  now: fc.constant(now),
  requests: fc.array(fc.option(requestFact), { minLength: 1, maxLength: 1 }),
  isTaken: fc.boolean(),
  session: fc.option(
    fc.record({ head: fc.option(start), nextIndex: fc.nat(9), run: fc.option(holder) }),
  ),
  from: fc.option(
    fc.record({
      sessionId: fc.constantFrom('s', 'other'),
      status: fc.constantFrom('succeeded' as const, 'failed' as const, 'pending' as const),
      snapshot: start,
    }),
  ),
});
const request: fc.Arbitrary<ClaimRequest> = fc.record(
  {
    runId: fc.constant(id(9)),
    sessionId: fc.constant('s'),
    from: fc.constantFrom('head' as const, { snapshotId: id(1) }),
    expectHead: fc.constantFrom(null, id(1), id(2)),
    ttl: fc.constant(1),
    worker: fc.constant('w'),
    mode,
    inputs: fc.constant([]),
    requests: fc.constant([{ key: 'k', digest: 'same' }]),
  },
  { requiredKeys: ['runId', 'sessionId', 'from', 'ttl', 'worker', 'mode', 'inputs'] },
);

/** The decision, or the refusal. */
function attempt<T>(decide: () => T): T | WaymarkError {
  try {
    return decide();
  } catch (error) {
    if (isWaymarkError(error)) return error;
    throw error;
  }
}

function forAccepted(
  check: (
    decision: ClaimDecision<number, string>,
    known: ClaimFacts<number, string>,
    given: ClaimRequest,
  ) => void,
): void {
  fc.assert(
    fc.property(facts, request, (known, given) => {
      const decided = attempt(() => decideClaim(known, given));
      if (!isWaymarkError(decided)) check(decided, known, given);
    }),
    { numRuns: 3000 },
  );
}

test('no run is displaced that may still write', () => {
  forAccepted(({ displaced }, { session, requests }) => {
    const runs = [session?.run, ...requests.map((each) => each?.run)].filter((each) => !!each);
    for (const key of displaced) {
      expect(runs.some((each) => each.key === key && !isHolder(each, now))).toBe(true);
    }
    if (session?.run) expect(displaced).toContain(session.run.key);
  });
});

test('a claim starts from the head, or from a succeeded snapshot of the session', () => {
  forAccepted((decision, { session, from }, given) => {
    if (given.from === 'head') expect(decision.start).toBe(session?.head ?? null);
    else {
      expect(from).toMatchObject({ sessionId: 's', status: 'succeeded' });
      expect(decision.start).toBe(from?.snapshot);
    }
    expect(decision.turnIndex).toBe((decision.start?.turnIndex ?? -1) + 1);
    expect(decision.isNewSession).toBe(session === null);
  });
});

test('a claim that expects another head is refused', () => {
  forAccepted(({ head }, _, { expectHead }) => {
    if (expectHead !== undefined) expect(head?.snapshotId ?? null).toBe(expectHead);
  });
});

test('a key with a result or a running run is never given to another claim', () => {
  forAccepted((_, { requests }, given) => {
    const [known] = requests;
    if (given.requests === undefined || !known || known.sessionId === null) return;
    if (known.run !== null) expect(isHolder(known.run, now)).toBe(false);
    else if (known.at > now - requestTtl) {
      expect(known.hasReceipt).toBe(false);
      expect([null, 'pending']).toContain(known.status);
    }
  });
});

test('the next index counts what a displaced run and an unlisted head will take', () => {
  forAccepted((decision, { session }) => {
    const { displaced, head, start: from } = decision;
    const ref = { runId: id(9), attempt: 1, sessionId: 's' };
    const listsHead = head !== null && !head.isListed && head.key !== from?.key;
    const left = session?.run ? 1 : 0;
    expect(toClaim(ref, decision).nextIndex).toBe(
      (session?.nextIndex ?? 0) + left + (listsHead ? 1 : 0),
    );
    expect(displaced.length).toBeGreaterThanOrEqual(left);
  });
});

test('only an interrupted start says whether it was answered, and not to a later attempt', () => {
  forAccepted((decision) => {
    const { start: from } = decision;
    const answeredBy = (attempt: number): boolean | undefined =>
      toClaim({ runId: id(9), attempt, sessionId: 's' }, decision).parent?.answered;
    const isInterrupted = from?.finishReason === 'interrupted';
    expect(answeredBy(1)).toBe(isInterrupted ? from.isAnswered : undefined);
    expect(answeredBy(2)).toBe(isInterrupted ? false : undefined);
  });
});
