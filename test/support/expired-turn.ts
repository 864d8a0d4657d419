import { expect } from 'vitest';
import { isWaymarkError } from '../../src/core/error.ts';
import { createIds } from '../../src/core/id.ts';
import { systemClock } from '../../src/core/time.ts';
import type { Message } from '../../src/protocol/message.ts';
import { textOf } from '../../src/protocol/messages.ts';
import { emptyState, hashState } from '../../src/session/session-state.ts';
import type { Store } from '../../src/store/index.ts';

const newId = createIds(systemClock);
export const scope = { agent: 'a' };
export const sessionId = 's';

/**
 * Takes a turn under a claim that has expired as soon as it is there. Gives whether it was saved. `meanwhile` runs before the
 * turn is saved.
 */
export async function takeTurn(
  { runs }: Store,
  text: string,
  meanwhile?: () => Promise<unknown>,
): Promise<boolean> {
  if (runs === undefined) return expect.fail('the store has no runs');
  try {
    const claim = await runs.claim(scope, {
      runId: newId(),
      sessionId,
      from: 'head',
      mode: 'attached',
      inputs: [],
      ttl: 0,
      worker: 'w',
    });
    const { parent } = claim;
    const base = parent && (await runs.load(scope, { snapshotId: parent.snapshotId }));
    if (parent !== undefined && base === undefined) return expect.fail('the head is not there');
    const before = base?.state ?? emptyState;
    const message: Message = { role: 'user', content: [{ text }] };
    const state = { ...before, history: before.history.append([message]) };
    await meanwhile?.();
    await runs.commit(claim, {
      snapshotId: claim.runId,
      ...(parent && { parentId: parent.snapshotId }),
      ...(base && { base }),
      turnIndex: (parent?.turnIndex ?? -1) + 1,
      event: 'turnEnd',
      status: 'succeeded',
      state,
      stateHash: hashState(state),
      end: true,
    });
    return true;
  } catch (error) {
    // Another worker has taken the session.
    if (isWaymarkError(error) && error.status === 'ABORTED') return false;
    throw error;
  }
}

/** Each store takes so many turns, all in one session, and closes. What was saved is there, and nothing else. */
export async function raceForTurns(stores: readonly Store[], turns: number): Promise<void> {
  const saved: string[] = [];
  const lane = async (store: Store, lane: number): Promise<void> => {
    for (let turn = 0; turn < turns; turn++) {
      const text = `${lane} ${turn}`;
      if (await takeTurn(store, text)) saved.push(text);
    }
  };
  await Promise.all(stores.map(lane));
  const [store] = stores;
  const head = await store?.getSnapshot(scope, { sessionId });
  const said = (head?.state?.messages ?? []).map(textOf);
  expect(said.toSorted()).toEqual(saved.toSorted());
  expect(await store?.maintenance?.verify()).toEqual([]);
  await Promise.all(stores.map((each) => each.close?.()));
}
