import type { Chunk, FinishReason } from '../protocol/turn.ts';
import type { Committed, CommitWrite, StateWrite } from '../session/store.ts';
import type { ActiveRun, Invocation } from './invocation.ts';
import type { Turn } from './turn-state.ts';

/** Writes a snapshot; the chunk that tells of it is shown only once it is written. */
export async function commit(
  invocation: Invocation,
  run: ActiveRun,
  chunk: Chunk,
  write: Omit<CommitWrite, keyof StateWrite | 'parentId' | 'turnIndex' | 'stateHash'>,
): Promise<Committed> {
  const { spec, scope, working, parentId, turnIndex } = invocation;
  await run.log.settled();
  const event = Object.keys(chunk).length === 0 ? undefined : run.log.prepare(chunk);
  const committed = await spec.ledger.commit(scope, run.position, {
    ...stateWrite(invocation),
    ...write,
    ...(parentId !== undefined && { parentId }),
    turnIndex,
    stateHash: working.hash(),
    ...(run.log.durable && { events: [...run.log.takeUnwritten(), ...(event ? [event] : [])] }),
  });
  if (write.status === 'succeeded') {
    invocation.base = committed.base;
    invocation.parentId = write.snapshotId;
    invocation.savedInRun += write.listed === false ? 0 : 1;
    working.saved();
  }
  if (event !== undefined) {
    run.log.publishWritten(event);
    invocation.outbox.pushLogged(chunk, event);
  }
  return committed;
}

/** The state as it grew from what was saved last. */
export function stateWrite({ base, working, good }: Invocation): StateWrite {
  // A state that was brought up to a newer schema did not grow from the stored one by patches.
  const known =
    base !== undefined && (base.state.custom === good.custom || base.state === working.state);
  return {
    ...(base && { base }),
    state: working.state,
    ...(known && working.customPatch.length > 0 && { customPatch: working.customPatch }),
  };
}

/** Keeps the state reached so far with the run. */
export async function checkpoint(
  invocation: Invocation,
  run: ActiveRun,
  midTurn: boolean,
): Promise<void> {
  const { spec, working } = invocation;
  const ref = run.position.run;
  if (ref === undefined || spec.store === undefined || !('runs' in spec.store)) return;
  const inputsDone = run.detached?.inputsDone ?? 0;
  const write = { ...stateWrite(invocation), stateHash: working.hash(), inputsDone, midTurn };
  const base = await spec.store.runs?.checkpoint(ref, write);
  if (base !== undefined) {
    invocation.base = base;
    working.saved();
  }
}

/** The chunk that ends a turn. */
export function endChunk(turn: Turn, finishReason: FinishReason, snapshotId?: string): Chunk {
  const { usage } = turn;
  return {
    ...(snapshotId !== undefined && { snapshotCreated: snapshotId }),
    turnEnd: {
      ...(snapshotId !== undefined && { snapshotId }),
      finishReason,
      ...(Object.keys(usage).length > 0 && { usage }),
    },
  };
}
