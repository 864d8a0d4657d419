import { publicMessageOf, toErrorBody, toWaymarkError, WaymarkError } from '../../core/error.ts';
import type { Json } from '../../core/json/json.ts';
import type { Chunk, FinishReason } from '../../protocol/turn.ts';
import { addUsage } from '../../protocol/usage.ts';
import type { RequestOutcome } from '../../store/contract/store.ts';
import type { ActiveRun } from './active-run.ts';
import { commit, endChunk, release } from './commit.ts';
import { endDetachedTurn } from './finish-detached.ts';
import type { InvocationState } from './invocation-state.ts';
import { failedFrom } from './lineage.ts';
import { endElsewhere, giveUp, saveSurely } from './save-surely.ts';
import { endWell, isAtSnapshot, noteSnapshot, wantsSnapshot } from './take-snapshot.ts';
import { leavingInbox, takesInbox } from './take-steering.ts';
import { tellInterrupt } from './tell-interrupt.ts';
import { totalsOf } from './turn-limits.ts';
import { receiptFor, turnReceipt } from './turn-receipt.ts';
import { lostError, type Outcome, type Turn, waitsForSteering } from './turn-state.ts';

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
      if (run === undefined) ended = outcome;
      else if (run.detached !== undefined)
        ended = await endDetachedTurn(invocation, run, turn, outcome);
      else ended = await endAttachedTurn(invocation, run, turn, outcome);
      // Known at once: the invocation does not wait for a handler that was given up.
      if (ended.kind === 'failed') invocation.ending.failure = ended.error;
      if (ended.kind === 'elsewhere') invocation.followElsewhere(ended.output);
      return ended;
    } finally {
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
      if (finishReason === 'interrupted') tellInterrupt(invocation, run.runId);
      return outcome;
    }
  }
}

/** How a turn succeeded or was stopped. */
interface SuccessOf {
  readonly finishReason: FinishReason;
  readonly output: Json | undefined;
  /** It must not end before it has taken its inbox. */
  readonly takesInbox: boolean;
}

/** What to write for a turn that succeeded or was stopped. */
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
  { finishReason, output, takesInbox: mustTake }: SuccessOf,
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
      {
        ...(lastId !== undefined && { snapshotId: lastId }),
        ...(message && { message }),
        ...(output !== undefined && { output }),
        finishReason,
        ...(Object.keys(turn.usage).length > 0 && { usage: turn.usage }),
      },
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
async function saveFailed(
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
    end: true,
    ...leavingInbox(invocation, run),
    ...receiptFor(run, () =>
      turnReceipt(invocation, {
        ...(fallbackSnapshotId !== undefined && { snapshotId: fallbackSnapshotId }),
        finishReason: 'failed',
        error,
        ...(Object.keys(turn.usage).length > 0 && { usage: turn.usage }),
      }),
    ),
  });
  turn.snapshotIds.push(run.runId);
  invocation.ending.failedId = run.runId;
  invocation.fallBack();
}

/** The error of a turn that was done but could not be saved. */
export function savingFailed(cause: unknown): WaymarkError {
  const failure = toWaymarkError(cause);
  const told = (message: string): string =>
    `The turn was done, but saving its snapshot failed: ${message}`;
  return new WaymarkError(failure.status, told(failure.message), {
    cause,
    publicMessage: told(publicMessageOf(failure)),
    details: failure.details,
  });
}
