import { requestKey } from '../../src/agent/turn/inputs.ts';
import type { Snapshot } from '../../src/protocol/snapshot.ts';
import type { Scope, Store } from '../../src/store/contract/store.ts';

/** Everything that a store gives out about some scopes, as plain JSON. */
export type Readout = Readonly<Record<string, unknown>>;

/**
 * Reads everything there is to read. What cannot be read is passed to `onError`, by the name of the call; without it, the
 * first error is thrown. Requests are read by their ids: a store forgets them after a day, so they are not part of fixtures.
 */
export async function readout(
  store: Store,
  scopes: readonly Scope[],
  onError?: (call: string, error: unknown) => void,
  requestIds: readonly string[] = [],
): Promise<Readout> {
  const { timeline, maintenance, runs, events } = store;
  const all: Record<string, unknown> = {};
  const read = async <Value>(call: string, get: () => Promise<Value> | undefined) => {
    try {
      const value = await get();
      all[call] = value === undefined ? null : JSON.parse(JSON.stringify(value));
      return value;
    } catch (error) {
      if (onError === undefined) throw error;
      onError(call, error);
      return undefined;
    }
  };
  const readRun = async (scope: Scope, at: string, runId: string): Promise<void> => {
    await read(`${at} run ${runId}`, () => runs?.getRun(scope, runId));
    await read(`${at} events ${runId}`, () => events?.read(scope, runId, { limit: 1000 }));
  };
  for (const scope of scopes) {
    const at = `${scope.owner ?? '-'}/${scope.agent}`;
    const sessions = await read(`${at} sessions`, () => timeline?.listSessions(scope));
    await read(`${at} search`, () => timeline?.listSessions(scope, { query: 'drinks' }));
    for (const { sessionId } of sessions?.items ?? []) {
      const here = `${at}/${sessionId}`;
      await read(`${here} session`, () => timeline?.getSession(scope, sessionId, { state: true }));
      await read(`${here} path`, () => timeline?.listSnapshots(scope, sessionId));
      await read(`${here} head`, () => store.getSnapshot(scope, { sessionId }));
      const list = await read(`${here} snapshots`, () =>
        timeline?.listSnapshots(scope, sessionId, { includeOrphaned: true }),
      );
      for (const { snapshotId } of list?.items ?? []) {
        await read(`${here} ${snapshotId}`, () => store.getSnapshot(scope, { snapshotId }));
        await readRun(scope, here, snapshotId);
      }
      await read(`${here} export`, () => maintenance?.exportSession(scope, sessionId));
    }
    await read(`${at} dead runs`, () => runs?.listDeadRuns?.(scope));
    for (const requestId of requestIds) {
      const key = requestKey(scope, requestId);
      await read(`${at} request ${requestId}`, () => runs?.getRequest(key));
    }
    for (const run of (await read(`${at} runs`, () => runs?.listRuns(scope))) ?? []) {
      await readRun(scope, at, run.runId);
      await read(`${at} step of ${run.runId}`, () => runs?.getStep(run, 'fetch'));
      await read<Snapshot | undefined>(`${at} pending ${run.runId}`, () =>
        store.getSnapshot(scope, { snapshotId: run.runId }),
      );
    }
  }
  return all;
}
