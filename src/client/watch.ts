import type { ApiCallOptions, WatchOptions } from '../api/agent-api.ts';
import type { AgentTypes, SnapshotOf, WatchEvent } from '../api/types.ts';
import { hasStatus } from '../core/error.ts';
import { backoff } from '../core/time.ts';
import { parseEventId } from '../protocol/ids.ts';
import { followRun } from './follow-run.ts';
import type { Transport } from './transport.ts';

const pollDelays = { baseMs: 250, maxMs: 5_000 };

export interface RemoteSnapshot {
  readonly agent: string;
  readonly snapshotId: string;
}

/** The events of a run, and at its end the snapshot it came to. */
export async function* watchRun<Types extends AgentTypes>(
  transport: Transport,
  run: RemoteSnapshot,
  { after, artifacts, signal }: ApiCallOptions & WatchOptions = {},
): AsyncGenerator<WatchEvent<Types>, void, undefined> {
  if (after !== undefined) parseEventId(after);
  for await (const event of followRun(transport, { ...run, artifacts, after }, signal)) {
    switch (event.type) {
      case 'chunk':
        // The server speaks for the types its agent declared.
        yield { type: 'chunk', id: event.id ?? '', chunk: event.chunk } as WatchEvent<Types>;
        break;
      case 'reset':
        yield event;
        break;
      case 'output':
        yield { type: 'end', snapshot: await readSnapshot(transport, run, signal) };
        break;
      case 'error':
        throw event.error;
    }
  }
}

/** Resolves when the snapshot has a terminal status, or reads `expired`. */
export async function waitForRun<Types extends AgentTypes>(
  transport: Transport,
  run: RemoteSnapshot,
  { signal }: ApiCallOptions = {},
): Promise<SnapshotOf<Types>> {
  const read = (): Promise<SnapshotOf<Types>> => readSnapshot(transport, run, signal);
  let snapshot = await read();
  if (snapshot.status !== 'pending') return snapshot;
  try {
    for await (const event of watchRun<Types>(transport, run, signal ? { signal } : {})) {
      if (event.type === 'end') return event.snapshot;
    }
  } catch (error) {
    // A store that keeps no events can still be asked.
    if (!hasStatus(error, 'FAILED_PRECONDITION')) throw error;
  }
  for (let attempt = 1; snapshot.status === 'pending'; attempt++) {
    await transport.clock.sleep(backoff(attempt, pollDelays), signal);
    snapshot = await read();
  }
  return snapshot;
}

async function readSnapshot<Types extends AgentTypes>(
  transport: Transport,
  { agent, snapshotId }: RemoteSnapshot,
  signal: AbortSignal | undefined,
): Promise<SnapshotOf<Types>> {
  return await transport.json<SnapshotOf<Types>>({
    operation: 'getSnapshot',
    params: { agent, snapshot: snapshotId },
    signal,
  });
}
