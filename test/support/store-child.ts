// A process that works on a store it shares with the test: `node store-child.ts <store> <task>`, both as JSON.

import { isWaymarkError } from '../../src/core/error.ts';
import { createIds } from '../../src/core/id.ts';
import { systemClock } from '../../src/core/time.ts';
import { emptyState, hashState } from '../../src/session/session-state.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { openShared, type SharedStore } from './shared-store.ts';
import { text } from './store-workload.ts';

/** What a process is to do. */
export type ChildTask =
  /** Adds this many messages to one session, each in a turn; retries while the session is busy. */
  | {
      readonly kind: 'add';
      readonly sessionId: string;
      readonly name: string;
      readonly count: number;
    }
  /** Stops a run after being told to on stdin. */
  | { readonly kind: 'abort'; readonly runId: string };

export const childScope = { agent: 'shared' };

const newId = createIds(systemClock);

/** A turn that adds one message; gives whether the session was free. */
export async function addMessage(store: Store, sessionId: string, words: string): Promise<boolean> {
  const { runs } = store;
  if (runs === undefined) throw new TypeError('The store has no runs.');
  try {
    const held = await runs.claim(childScope, {
      runId: newId(),
      sessionId,
      from: 'head',
      mode: 'attached',
      inputs: [],
      ttl: 30_000,
      worker: String(process.pid),
    });
    const base = held.parent && (await runs.load(childScope, held.parent));
    const before = base?.state ?? emptyState;
    const state = { ...before, history: before.history.append([text('user', words)]) };
    await runs.commit(held, {
      ...(base && { base, parentId: base.snapshotId }),
      snapshotId: held.runId,
      turnIndex: held.parent === undefined ? 0 : held.parent.turnIndex + 1,
      event: 'turnEnd',
      status: 'succeeded',
      state,
      stateHash: hashState(state),
      end: true,
    });
    return true;
  } catch (error) {
    if (isWaymarkError(error) && error.status === 'ABORTED') return false;
    throw error;
  }
}

async function work(store: Store, task: ChildTask): Promise<void> {
  if (task.kind === 'abort') {
    await store.open?.();
    process.stdout.write('ready\n');
    await new Promise((resolve) => process.stdin.once('data', resolve));
    await store.abort?.abortSnapshot(childScope, task.runId);
    return;
  }
  for (let n = 0; n < task.count; ) {
    if (await addMessage(store, task.sessionId, `${task.name} ${n}`)) {
      if (n++ === 0) process.stdout.write('begun\n');
    } else await systemClock.sleep(1 + (n % 3));
  }
}

if (import.meta.main && process.argv[2] !== undefined) {
  const store = openShared(JSON.parse(process.argv[2]) as SharedStore);
  await work(store, JSON.parse(process.argv[3] ?? '') as ChildTask);
  await store.close?.();
  process.stdin.unref?.();
}
