import type { Chunk, FinishReason } from '../../protocol/turn.ts';
import type {
  Committed,
  CommitWrite,
  RequestOutcome,
  RunEvent,
  RunUsage,
  Spent,
  StateWrite,
} from '../../store/contract/store.ts';
import { fullStore } from '../spec/spec.ts';
import type { ActiveRun } from './active-run.ts';
import { armDeadline } from './arm-deadline.ts';
import type { InvocationState } from './invocation-state.ts';
import { checkpointedAs, type ListedState, savedAs } from './lineage.ts';
import { noteInbox } from './take-steering.ts';
import { titleFor } from './title-for.ts';
import type { Turn } from './turn-state.ts';
import { whileHolding } from './while-holding.ts';

/** Writes a snapshot, and publishes its chunk after the commit. */
export async function commit(
  invocation: InvocationState,
  run: ActiveRun,
  chunk: Chunk,
  write: Omit<CommitWrite, keyof StateWrite | 'parentId' | 'turnIndex' | 'stateHash'>,
): Promise<Committed> {
  const { spec, scope, working, lineage, position, spending } = invocation;
  const { nextParentId: parentId } = lineage;
  const { turnIndex } = position;
  const { snapshotId } = write;
  let listed: ListedState | undefined;
  if (write.end && write.finishReason === 'interrupted') await armDeadline(invocation, snapshotId);
  const committed = await writeWithEvents(invocation, run, chunk, (events) => {
    // Read here: the state may change while earlier events are written.
    const stateHash = working.hash();
    if (write.listed !== false) {
      listed = { id: snapshotId, state: working.state };
    }
    const defaultTitle =
      turnIndex === 0 && write.event !== 'toolIterationEnd' ? titleFor(invocation) : undefined;
    return spending.alongWith(fullStore(spec)?.spend, (spend) =>
      spec.turnStore.commit(scope, run.turnBase, {
        ...stateWrite(invocation),
        ...write,
        ...spend,
        ...(parentId !== undefined && { parentId }),
        turnIndex,
        stateHash,
        ...(events && { events }),
        ...(defaultTitle !== undefined && { defaultTitle }),
      }),
    );
  });
  if (!write.end) run.onProgress?.();
  if (listed !== undefined) position.nextIndex++;
  if (write.status === 'succeeded') {
    invocation.lineage = savedAs(invocation.lineage, committed.base, listed);
    working.saved();
  }
  return committed;
}

/** Ends a run without a snapshot. */
export async function release(
  invocation: InvocationState,
  run: ActiveRun,
  chunk: Chunk,
  requests?: RequestOutcome,
): Promise<void> {
  const { turnStore } = invocation.spec;
  await writeWithEvents(invocation, run, chunk, (events) =>
    turnStore.release(run.turnBase, events, requests),
  );
}

/** Writes together with the events that the store does not have yet, and publishes the chunk after that. */
function writeWithEvents<Value>(
  { chunkSink }: InvocationState,
  { log }: ActiveRun,
  chunk: Chunk,
  write: (events: readonly RunEvent[] | undefined) => Promise<Value>,
): Promise<Value> {
  return log.takeAlong(async (unwritten) => {
    const event =
      Object.keys(chunk).length === 0 ? undefined : log.stage(chunk, chunkSink.shown(chunk));
    const value = await write(log.durable ? [...unwritten, ...(event ? [event] : [])] : undefined);
    if (event !== undefined) log.publishStaged(event);
    return value;
  });
}

/** The state to write, as a change of what was saved last. */
export function stateWrite({ lineage, working }: InvocationState): StateWrite {
  const { savedBase: base } = lineage;
  // An upgraded state did not come from the stored one by patches.
  const known = base !== undefined && base.state.custom === working.patchedFrom;
  return {
    ...(base && { base }),
    state: working.state,
    ...(known && working.customPatch.length > 0 && { customPatch: working.customPatch }),
  };
}

/** Stores the state reached so far with the run, for the worker that takes it over. */
export async function checkpoint(
  invocation: InvocationState,
  run: ActiveRun,
  midTurn: boolean,
): Promise<void> {
  const { spec, working } = invocation;
  const ref = run.turnBase.run;
  if (ref === undefined || spec.store === undefined || !('runs' in spec.store)) return;
  const { runs, spend: recorder } = spec.store;
  const inputsDone = run.detached?.inputsDone ?? 0;
  const write = {
    ...stateWrite(invocation),
    stateHash: working.hash(),
    inputsDone,
    midTurn,
    used: usedBy(invocation, midTurn),
  };
  // Includes the events: the next attempt does not send them again.
  const base = await whileHolding(invocation, () =>
    run.log.takeAlong(
      async (events) =>
        await invocation.spending.alongWith(recorder, async (spend) =>
          runs?.checkpoint(ref, { ...write, ...spend, ...(events.length > 0 && { events }) }),
        ),
    ),
  );
  if (base !== undefined) {
    run.onProgress?.();
    noteInbox(run, base.inbox);
    invocation.lineage = checkpointedAs(invocation.lineage, base);
    working.saved();
  }
}

/** What the run has used so far, for the limits of the next attempt. */
function usedBy({ turn, progress, position }: InvocationState, midTurn: boolean): RunUsage {
  const { totals } = position;
  const spent =
    turn === undefined || !midTurn ? nothing : { usage: turn.usage, toolCalls: turn.toolCalls };
  return { turn: spent, before: progress.usage, ...(totals && { totals }) };
}

const nothing: Spent = { usage: {}, toolCalls: 0 };

/** The chunk that ends a turn. */
export function endChunk(turn: Turn, finishReason: FinishReason, snapshotId?: string): Chunk {
  const { usage, output } = turn;
  return {
    ...(snapshotId !== undefined && { snapshotCreated: snapshotId }),
    turnEnd: {
      ...(snapshotId !== undefined && { snapshotId }),
      finishReason,
      ...(Object.keys(usage).length > 0 && { usage }),
      ...(output !== undefined && finishReason !== 'failed' && { output }),
    },
  };
}
