import { publicMessageOf, toErrorBody, toWaymarkError, WaymarkError } from '../../core/error.ts';
import type { Json } from '../../core/json/json.ts';
import type { Chunk, FinishReason } from '../../protocol/turn.ts';
import { addUsage } from '../../protocol/usage.ts';
import type { RequestOutcome } from '../../store/contract/store.ts';
import { claimAgain, dropRun } from './accept.ts';
import {
  commit,
  endChunk,
  endWell,
  isAtSnapshot,
  noteSnapshot,
  release,
  wantsSnapshot,
} from './commit.ts';
import { endDetachedTurn, finishDetached } from './detach.ts';
import type { InvocationState } from './invocation-state.ts';
import { totalsOf } from './limits.ts';
import { receiptFor, turnReceipt } from './output.ts';
import { endElsewhere, giveUp, saveSurely } from './save-surely.ts';
import { leavingInbox, takesInbox } from './steer.ts';
import { keepPartialAnswer, stoppedBy } from './stop.ts';
import { notifyInterrupt } from './telemetry.ts';
import { captureEnd, closeFiles } from './turn-files.ts';
import {
  type ActiveRun,
  failedFrom,
  lostError,
  type Outcome,
  type Turn,
  usageOf,
  waitsForSteering,
} from './turn-state.ts';

/** Saves the outcome of a turn and ends it. Sends exactly one `turnEnd`, whatever happened. */
export function finishTurn(
  invocation: InvocationState,
  turn: Turn,
  outcome: Outcome,
): Promise<Outcome> {
  return invocation.locked(async () => {
    const { run, progress } = invocation;
    // The handler was given up while the turn ended.
    if (invocation.turn !== turn) return outcome;
    const usageBefore = progress.usage;
    progress.usage = addUsage(progress.usage, turn.usage);
    let ended: Outcome | undefined;
    // The worker that has the run now does not know what was spent here.
    if (outcome.kind === 'lost' && !invocation.spending.isRecorded) await recordRest(invocation);
    try {
      const reached =
        invocation.files === undefined ? outcome : await captureEnd(invocation, outcome);
      if (run === undefined) ended = reached;
      else if (run.detached !== undefined)
        ended = await endDetachedTurn(invocation, run, turn, reached);
      else ended = await endAttachedTurn(invocation, run, turn, reached);
      // Known at once: the invocation does not wait for a handler that was given up.
      if (ended.kind === 'failed') invocation.ending.failure = ended.error;
      if (ended.kind === 'elsewhere') invocation.followElsewhere(ended.output);
      return ended;
    } finally {
      // The files of a background run stay open until it ends.
      if (invocation.files !== undefined && ended?.kind !== 'steered' && !run?.detached) {
        await closeFiles(invocation, { failed: ended === undefined || ended.kind === 'failed' });
      }
      if (ended?.kind === 'steered') progress.usage = usageBefore;
      else {
        if (!invocation.spending.isRecorded) await recordRest(invocation);
        invocation.turn = undefined;
      }
    }
  });
}

/** Records what was spent and no commit has taken along. For a sub-agent, the agent that it works for does it. */
async function recordRest({ spending, request, failures }: InvocationState): Promise<void> {
  if (spending === request.parent?.spending) return;
  await spending.flush().catch((error: unknown) => failures.report(error, 'store'));
}

async function endAttachedTurn(
  invocation: InvocationState,
  run: ActiveRun,
  turn: Turn,
  outcome: Outcome,
): Promise<Outcome> {
  // The commit that follows ends the claim, and a late stop must not reach the next turn.
  run.stopHeartbeat();
  const ended = await saveOutcome(invocation, run, turn, outcome);
  if (ended.kind === 'steered') {
    run.steering.isHinted = true;
    run.resumeHeartbeat();
    return ended;
  }
  invocation.host.logs.close(run.log);
  invocation.run = undefined;
  return ended;
}

async function saveOutcome(
  invocation: InvocationState,
  run: ActiveRun,
  turn: Turn,
  outcome: Outcome,
): Promise<Outcome> {
  switch (outcome.kind) {
    case 'elsewhere':
    case 'steered':
      return outcome;
    case 'lost':
      return await endElsewhere(invocation, run, turn, lostError(run.runId));
    case 'failed':
      if (invocation.spec.store === undefined) {
        await giveUp(invocation, run, turn);
        return outcome;
      }
      return await saveSurely(invocation, run, turn, {
        write: () => saveFailed(invocation, run, turn, outcome.error),
        outcome,
        // Report the error of the turn, not that of saving it.
        failure: () => outcome.error,
      });
    case 'stopped':
    case 'done': {
      const finishReason = outcome.kind === 'done' ? outcome.finishReason : 'aborted';
      const output = outcome.kind === 'done' ? outcome.output : undefined;
      let end: SuccessWrite | undefined;
      const saved = await saveSurely(invocation, run, turn, {
        async write() {
          end ??= successWrite(invocation, run, turn, {
            finishReason,
            output,
            takesInbox: waitsForSteering(outcome) && takesInbox(invocation),
          });
          await saveSuccess(invocation, run, end);
        },
        outcome,
        failure: savingFailed,
      });
      if (saved !== outcome) return saved;
      invocation.ending.last = { finishReason, ...(output !== undefined && { output }) };
      if (finishReason === 'interrupted') notifyInterrupt(invocation, run.runId);
      return outcome;
    }
  }
}

interface SuccessWrite {
  readonly chunk: Chunk;
  /** Absent if there is nothing to save. */
  readonly write?: Parameters<typeof commit>[3];
  readonly listed: boolean;
  readonly requests?: RequestOutcome;
}

/** Takes a snapshot if the policy wants one; the latest state is saved in any case. */
function successWrite(
  invocation: InvocationState,
  run: ActiveRun,
  turn: Turn,
  {
    finishReason,
    output,
    takesInbox: mustTake,
  }: {
    readonly finishReason: FinishReason;
    readonly output: Json | undefined;
    /** It must not end before it has taken its inbox. */
    readonly takesInbox: boolean;
  },
): SuccessWrite {
  const { spec, position, progress, ending } = invocation;
  const { policyBase } = invocation.lineage;
  const listed = wantsSnapshot(invocation, 'turnEnd', position.turnIndex);
  // Without a store nothing is saved, and hashing a client-held state would cost as much as the whole turn.
  const changed = spec.store !== undefined && invocation.hasUnsaved();
  const snapshotId = listed ? run.runId : undefined;
  const requests = receiptFor(run, () => {
    const lastId = snapshotId ?? (isAtSnapshot(invocation) ? policyBase?.id : undefined);
    const { message } = invocation.result();
    const told = turnReceipt(
      invocation,
      { snapshotId: lastId, message, output, finishReason, usage: usageOf(turn) },
      listed ? [run.runId] : [],
    );
    ending.receipt = { run, told, from: progress.turnSnapshots };
    return told;
  });
  const chunk = endChunk(turn, finishReason, snapshotId);
  // The head moves when the turn ends, so a turn with snapshots has to commit its end even if nothing changed since.
  if (!listed && !changed && !turn.hasSnapshots) return { chunk, listed, ...requests };
  const totals = totalsOf(invocation, turn);
  return {
    chunk,
    listed,
    write: {
      snapshotId: run.runId,
      event: 'turnEnd',
      status: 'succeeded',
      finishReason,
      usage: turn.usage,
      ...(totals && { totals }),
      listed,
      end: true,
      ...(mustTake ? { steered: run.steering.taken.size } : leavingInbox(invocation, run)),
      ...requests,
    },
  };
}

async function saveSuccess(
  invocation: InvocationState,
  run: ActiveRun,
  { chunk, write, listed, requests }: SuccessWrite,
): Promise<void> {
  if (write === undefined) await release(invocation, run, chunk, requests);
  else {
    await commit(invocation, run, chunk, write);
    if (write.totals !== undefined) invocation.position.totals = write.totals;
  }
  if (listed) noteSnapshot(invocation, run.runId);
  endWell(invocation);
}

/** Keeps the state of a failed turn for inspection. The session continues from the state before the turn. */
export async function saveFailed(
  invocation: InvocationState,
  run: ActiveRun,
  turn: Turn,
  failure: WaymarkError,
): Promise<void> {
  invocation.lineage = failedFrom(invocation.lineage, turn.info.parentId);
  const error = toErrorBody(failure);
  const { fallbackSnapshotId } = invocation.lineage;
  const totals = totalsOf(invocation, turn);
  await commit(invocation, run, endChunk(turn, 'failed'), {
    snapshotId: run.runId,
    event: 'turnEnd',
    status: 'failed',
    finishReason: 'failed',
    error,
    usage: turn.usage,
    ...(totals && { totals }),
    ...(invocation.ending.deadLetter && { deadLetter: true }),
    end: true,
    ...leavingInbox(invocation, run),
    ...receiptFor(run, () =>
      turnReceipt(invocation, {
        snapshotId: fallbackSnapshotId,
        finishReason: 'failed',
        error,
        usage: usageOf(turn),
      }),
    ),
  });
  turn.snapshotIds.push(run.runId);
  invocation.ending.failedId = run.runId;
  invocation.fallBack();
}

function savingFailed(cause: unknown): WaymarkError {
  const failure = toWaymarkError(cause);
  const told = (message: string): string =>
    `The turn was done, but saving its snapshot failed: ${message}`;
  return new WaymarkError(failure.status, told(failure.message), {
    cause,
    publicMessage: told(publicMessageOf(failure)),
    details: failure.details,
  });
}

/** Ends the invocation: saves what changed after the last turn, as a snapshot if the policy wants one. */
export async function finishInvocation(
  invocation: InvocationState,
  finishReason?: FinishReason,
): Promise<void> {
  const { turn, control, ending } = invocation;
  if (turn !== undefined) await endSkippedTurn(invocation, turn, finishReason);
  invocation.closeSession();
  const { last, failure, followed } = ending;
  if (finishReason !== undefined && last !== undefined && last.finishReason !== 'aborted') {
    ending.last = { ...last, finishReason };
  }
  const { run } = invocation;
  const ended = failure !== undefined || control.cause?.kind === 'lost' || followed !== undefined;
  if (run?.detached !== undefined) {
    await invocation.locked(() => finishDetached(invocation, run));
    const failed = failure !== undefined || control.cause !== undefined;
    if (invocation.files !== undefined) await closeFiles(invocation, { failed });
  } else if (run !== undefined) {
    // The run was taken over with no input left.
    await dropRun(invocation, run);
  } else if (!ended && invocation.progress.turnsBegun > 0 && invocation.spec.store !== undefined) {
    // There may be something to save, or a snapshot that the policy wants now.
    if (!invocation.hasUnsaved() && isAtSnapshot(invocation)) return;
    await invocation.locked(() => saveInvocationEnd(invocation));
  }
}

/** Ends a turn that the handler did not run, because it never called `session.run`. */
async function endSkippedTurn(
  invocation: InvocationState,
  turn: Turn,
  finishReason: FinishReason = 'stop',
): Promise<void> {
  const { ending, control } = invocation;
  const { failure } = ending;
  const outcome: Outcome =
    control.cause !== undefined
      ? stoppedBy(control.cause)
      : failure === undefined
        ? { kind: 'done', finishReason }
        : { kind: 'failed', error: failure };
  if (outcome.kind === 'stopped') keepPartialAnswer(invocation);
  invocation.closeSession();
  await finishTurn(invocation, turn, outcome);
}

async function saveInvocationEnd(invocation: InvocationState): Promise<void> {
  const { spec, host, position, ending } = invocation;
  const { turnIndex } = position;
  let run: ActiveRun | undefined;
  try {
    const changed = invocation.hasUnsaved();
    const listed = wantsSnapshot(invocation, 'invocationEnd', turnIndex);
    if (!changed && !listed) return;
    run = await claimAgain(invocation);
    run.stopHeartbeat();
    invocation.chunkSink.log = run.log;
    await commit(invocation, run, listed ? { snapshotCreated: run.runId } : {}, {
      snapshotId: run.runId,
      event: 'invocationEnd',
      status: 'succeeded',
      ...(ending.last && { finishReason: ending.last.finishReason }),
      ...(position.totals && { totals: position.totals }),
      listed,
      end: true,
    });
    if (listed) noteSnapshot(invocation, run.runId);
    endWell(invocation);
  } catch (error) {
    if (run !== undefined) await spec.turnStore.release(run.turnBase).catch(() => {});
    ending.failure = savingFailed(error);
    invocation.failures.report(ending.failure, 'store');
    invocation.fallBack();
  } finally {
    if (run !== undefined) host.logs.close(run.log);
    position.turnIndex = turnIndex;
  }
}
