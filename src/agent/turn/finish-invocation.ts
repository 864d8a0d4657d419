import type { FinishReason } from '../../protocol/turn.ts';
import type { ActiveRun } from './active-run.ts';
import { claimAgain, dropRun } from './claim-run.ts';
import { commit } from './commit.ts';
import { finishDetached } from './finish-detached.ts';
import { finishTurn, savingFailed } from './finish-turn.ts';
import type { InvocationState } from './invocation-state.ts';
import { keepPartialAnswer } from './partial.ts';
import { endWell, isAtSnapshot, noteSnapshot, wantsSnapshot } from './take-snapshot.ts';
import { type Outcome, stoppedBy, type Turn } from './turn-state.ts';

/** Ends the invocation: saves what changed after the last turn, as a snapshot if the policy wants one. */
export async function finishInvocation(
  invocation: InvocationState,
  /** How the handler says that the invocation ended. */
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
  } else if (run !== undefined) {
    // The run was taken over with no input left.
    await dropRun(invocation, run);
  } else if (!ended && invocation.progress.turnsBegun > 0 && mayDiffer(invocation)) {
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

/** Whether there is something to save, or a snapshot that the policy may want now. */
function mayDiffer(invocation: InvocationState): boolean {
  if (invocation.spec.store === undefined) return false;
  return invocation.hasUnsaved() || !isAtSnapshot(invocation);
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
