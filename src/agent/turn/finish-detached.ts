import { isWaymarkError, toErrorBody } from '../../core/error.ts';
import type { Snapshot, SnapshotStatus } from '../../protocol/snapshot.ts';
import type { Chunk, FinishReason, Output } from '../../protocol/turn.ts';
import { isUntaken } from '../../store/rules/decide-steer.ts';
import { fullStore } from '../spec/spec.ts';
import type { ActiveRun } from './active-run.ts';
import { checkpoint, commit, endChunk, stateWrite } from './commit.ts';
import type { InvocationState } from './invocation-state.ts';
import { inputDone } from './lineage.ts';
import { leavingInbox, takesInbox } from './take-steering.ts';
import { tellInterrupt } from './tell-interrupt.ts';
import { totalsOf } from './turn-limits.ts';
import { receiptFor } from './turn-receipt.ts';
import { type Outcome, type Turn, waitsForSteering } from './turn-state.ts';

/** The output of the caller who detached. */
export function detachedOutput({ position, run, progress }: InvocationState): Output {
  return {
    sessionId: position.sessionId,
    ...(run && { snapshotId: run.runId }),
    snapshotIds: [...progress.snapshotIds],
    finishReason: 'detached',
  };
}

/**
 * The end of one turn of a detached run: no snapshot, only a checkpoint when another input follows. The last turn of an agent that
 * can be steered ends together with its run, and only with the whole inbox.
 */
export async function endDetachedTurn(
  invocation: InvocationState,
  run: ActiveRun,
  turn: Turn,
  outcome: Outcome,
): Promise<Outcome> {
  const { position, ending, working, inbox } = invocation;
  const totalsBefore = position.totals;
  position.totals = totalsOf(invocation, turn) ?? totalsBefore;
  if (outcome.kind === 'done') {
    ending.last = {
      finishReason: outcome.finishReason,
      ...(outcome.output !== undefined && { output: outcome.output }),
    };
    const isEnd = inbox.queued.length === 0 && waitsForSteering(outcome) && takesInbox(invocation);
    if (isEnd && (await endTogether(invocation, run, turn, outcome.finishReason)) === 'steered') {
      position.totals = totalsBefore;
      return { kind: 'steered' };
    }
  }
  turn.snapshotIds.push(run.runId);
  if (outcome.kind !== 'done' || run.detached?.ended !== undefined) return outcome;
  invocation.lineage = inputDone(invocation.lineage, working.state);
  const end = endChunk(turn, outcome.finishReason);
  run.log.push(end, invocation.chunkSink.shown(end));
  if (run.detached !== undefined) run.detached.inputsDone++;
  if (inbox.queued.length > 0) await checkpoint(invocation, run, false);
  return outcome;
}

/**
 * Ends the run with its last turn, unless the inbox has messages that the turn has not taken. A commit that fails here is tried again,
 * and then reported, by {@link finishDetached}.
 */
async function endTogether(
  invocation: InvocationState,
  run: ActiveRun,
  turn: Turn,
  finishReason: FinishReason,
): Promise<'steered' | undefined> {
  run.stopHeartbeat();
  try {
    const ended = await commitEnd(invocation, run, {
      chunk: endChunk(turn, finishReason),
      steered: run.steering.taken.size,
    });
    if (ended !== undefined && run.detached !== undefined) run.detached.ended = ended;
  } catch (error) {
    run.resumeHeartbeat();
    if (!isUntaken(error)) return undefined;
    run.steering.isHinted = true;
    return 'steered';
  }
  return undefined;
}

/** Ends a detached run: gives its pending snapshot a terminal status, unless it was aborted first. */
export async function finishDetached(invocation: InvocationState, run: ActiveRun): Promise<void> {
  const { host } = invocation;
  run.stopHeartbeat();
  try {
    const ended =
      run.detached?.ended ?? (await commitEnd(invocation, run, untoldEnd(invocation, run)));
    const snapshot = ended ?? (await attachPartial(invocation, run));
    if (run.detached !== undefined && invocation.control.cause?.kind !== 'lost') {
      run.detached.over = true;
    }
    if (ended?.finishReason === 'interrupted') tellInterrupt(invocation, run.runId);
    if (snapshot !== undefined) await callOnFinish(invocation, snapshot);
  } catch (error) {
    // Another worker, or the next start of this one, continues the run.
    if (run.detached !== undefined) run.detached.trouble = error;
    invocation.failures.report(error, 'run');
  } finally {
    host.logs.close(run.log);
  }
}

/**
 * The last turn has ended already, but may not be saved with its inbox. If the inbox has got more since, the store refuses the end
 * and the worker that takes over takes it.
 */
function untoldEnd(
  invocation: InvocationState,
  run: ActiveRun,
): { readonly steered: number } | undefined {
  const { last } = invocation.ending;
  const waits = last !== undefined && last.finishReason !== 'interrupted';
  return waits && takesInbox(invocation) ? { steered: run.steering.taken.size } : undefined;
}

/** Writes the terminal status; `undefined` if another worker has the run or it was aborted. */
async function commitEnd(
  invocation: InvocationState,
  run: ActiveRun,
  /** The end of its last turn, if that is not told yet, and how many messages of the inbox it has. */
  end?: { readonly chunk?: Chunk; readonly steered: number },
): Promise<Snapshot | undefined> {
  const { control, position, progress, lineage } = invocation;
  const { failure, last, deadLetter } = invocation.ending;
  const { usage } = progress;
  if (control.cause?.kind === 'lost') return undefined;
  const status = statusOf(invocation);
  const finishReason = status === 'succeeded' ? last?.finishReason : status;
  position.turnIndex = Math.max(0, position.turnIndex);
  const { totals, turnIndex } = position;
  const isGood = status === 'succeeded';
  const chunk = isGood ? (end?.chunk ?? {}) : { turnEnd: { finishReason: status } };
  const error = failure && toErrorBody(failure);
  const requests = receiptFor(run, () => {
    const { message } = invocation.result();
    const snapshotId = isGood ? run.runId : lineage.fallbackSnapshotId;
    return {
      turnIndex,
      ...(snapshotId !== undefined && { snapshotId }),
      ...(isGood && { snapshotIds: [run.runId] }),
      ...(isGood && message && { message }),
      ...(isGood && last?.output !== undefined && { output: last.output }),
      ...(finishReason && { finishReason }),
      ...(Object.keys(usage).length > 0 && { usage }),
      ...(error && { error }),
    };
  });
  try {
    const { snapshot } = await commit(invocation, run, chunk, {
      snapshotId: run.runId,
      event: 'detach',
      status,
      ...(finishReason && { finishReason }),
      ...(error && { error }),
      usage,
      ...(totals && { totals }),
      ...(deadLetter && { deadLetter }),
      end: true,
      ...(end && isGood ? { steered: end.steered } : leftBy(invocation, run, status)),
      ...requests,
    });
    return snapshot;
  } catch (error) {
    if (isWaymarkError(error) && error.status === 'ABORTED') return undefined;
    throw error;
  }
}

/** The state of an aborted run is in no conversation, so the next turn gets all its messages. */
function leftBy(
  invocation: InvocationState,
  run: ActiveRun,
  status: SnapshotStatus,
): ReturnType<typeof leavingInbox> {
  return status === 'aborted' ? {} : leavingInbox(invocation, run);
}

/** Attaches the partial state to the snapshot of an aborted run; `undefined` if the run was taken over instead. */
async function attachPartial(
  invocation: InvocationState,
  run: ActiveRun,
): Promise<Snapshot | undefined> {
  const { working, spec, scope, progress, position } = invocation;
  const { totals } = position;
  const ref = run.turnBase.run;
  const store = fullStore(spec);
  if (ref === undefined || store === undefined) return undefined;
  await store.runs?.attachPartial(ref, {
    ...stateWrite(invocation),
    stateHash: working.hash(),
    usage: progress.usage,
    ...(totals && { totals }),
  });
  const snapshot = await store.getSnapshot(scope, { snapshotId: run.runId });
  if (snapshot?.status !== 'aborted') return undefined;
  const { state: _, ...metadata } = snapshot;
  return metadata;
}

function statusOf({
  ending: { failure },
  control,
}: InvocationState): Exclude<SnapshotStatus, 'pending' | 'expired'> {
  if (failure !== undefined || control.cause?.kind === 'failed') return 'failed';
  return control.cause === undefined ? 'succeeded' : 'aborted';
}

async function callOnFinish(
  { spec, failures, scope }: InvocationState,
  snapshot: Snapshot,
): Promise<void> {
  try {
    await spec.onFinish?.({
      agent: spec.name,
      ...(scope.owner !== undefined && { owner: scope.owner }),
      snapshot,
    });
  } catch (error) {
    failures.report(error, 'hook');
  }
}
