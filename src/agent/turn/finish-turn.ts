import { publicMessageOf, toErrorBody, toWaymarkError, WaymarkError } from '../../core/error.ts';
import type { Json } from '../../core/json/json.ts';
import { addUsage } from '../../generate/usage.ts';
import type { SnapshotEvent } from '../../protocol/snapshot.ts';
import type { Chunk, FinishReason } from '../../protocol/turn.ts';
import { StateCandidate } from '../../session/policy.ts';
import type { RequestOutcome } from '../../store/contract/store.ts';
import type { AgentSpec } from '../spec/spec.ts';
import { claimAgain, dropRun } from './accept-turn.ts';
import { checkpoint, commit, endChunk, release } from './commit.ts';
import { endDetachedTurn, finishDetached } from './detach.ts';
import type { ActiveRun, InvocationState } from './invocation-state.ts';
import { endedWith, failedFrom } from './lineage.ts';
import { keepPartialAnswer } from './partial.ts';
import { endElsewhere, giveUp, saveSurely } from './save-surely.ts';
import { totalsOf } from './turn-limits.ts';
import { receiptFor, turnReceipt } from './turn-receipt.ts';
import { lostError, type Outcome, stoppedBy, type Turn } from './turn-state.ts';

/** Saves what a turn came to and ends it: exactly one `turnEnd`, whatever happened. */
export function finishTurn(
  invocation: InvocationState,
  turn: Turn,
  outcome: Outcome,
): Promise<Outcome> {
  return invocation.locked(async () => {
    const { run, progress } = invocation;
    progress.usage = addUsage(progress.usage, turn.usage);
    try {
      if (run === undefined) return outcome;
      if (run.detached !== undefined) return await endDetachedTurn(invocation, run, turn, outcome);
      return await endAttachedTurn(invocation, run, turn, outcome);
    } finally {
      invocation.turn = undefined;
    }
  });
}

async function endAttachedTurn(
  invocation: InvocationState,
  run: ActiveRun,
  turn: Turn,
  outcome: Outcome,
): Promise<Outcome> {
  // From here on the claim is kept by the commit that follows, and a late stop must not reach the next turn.
  run.stopHeartbeat();
  const ended = await saveOutcome(invocation, run, turn, outcome);
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
        // The first error is the one to tell.
        failure: () => outcome.error,
      });
    case 'stopped':
    case 'done': {
      const finishReason = outcome.kind === 'done' ? outcome.finishReason : 'aborted';
      const output = outcome.kind === 'done' ? outcome.output : undefined;
      let end: GoodEnd | undefined;
      const saved = await saveSurely(invocation, run, turn, {
        async write() {
          end ??= goodEnd(invocation, run, turn, finishReason, output);
          await saveGood(invocation, run, end);
        },
        outcome,
        failure: savingFailed,
      });
      if (saved !== outcome) return saved;
      invocation.ending.last = { finishReason, ...(output !== undefined && { output }) };
      return outcome;
    }
  }
}

/** A good end as it is going to be saved. */
interface GoodEnd {
  readonly chunk: Chunk;
  /** Absent: there is nothing to save. */
  readonly write?: Parameters<typeof commit>[3];
  readonly listed: boolean;
  readonly requests?: RequestOutcome;
}

/** A good end: a snapshot if the policy says so; the latest state is saved in any case. */
function goodEnd(
  invocation: InvocationState,
  run: ActiveRun,
  turn: Turn,
  finishReason: FinishReason,
  output: Json | undefined,
): GoodEnd {
  const { spec, working, position, progress, ending } = invocation;
  const { policyBase } = invocation.lineage;
  const listed = wantsSnapshot(invocation, 'turnEnd', position.turnIndex);
  // Without a store nothing is saved, and hashing what the client brought along would cost as much as all of it.
  const changed = spec.store !== undefined && invocation.hasUnsaved();
  const snapshotId = listed ? run.runId : undefined;
  const requests = receiptFor(run, () => {
    const isSaved = policyBase !== undefined && policyBase.hash === working.hash();
    const lastId = snapshotId ?? (isSaved ? policyBase.id : undefined);
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
  // The head moves when the turn ends: one whose last snapshot has all of it still has to say so.
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
      ...requests,
    },
  };
}

async function saveGood(
  invocation: InvocationState,
  run: ActiveRun,
  { chunk, write, listed, requests }: GoodEnd,
): Promise<void> {
  if (write === undefined) await release(invocation, run, chunk, requests);
  else {
    await commit(invocation, run, chunk, write);
    if (write.totals !== undefined) invocation.position.totals = write.totals;
  }
  if (listed) noteSnapshot(invocation, run.runId);
  endWell(invocation);
}

/** A failed end: the state is kept for inspection under the reserved id, and the session goes on from the last good one. */
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

/** After all tools of one model message: a snapshot if the policy says so, a checkpoint if another process may go on. */
export async function checkpointTurn(invocation: InvocationState, turn: Turn): Promise<void> {
  await invocation.locked(async () => {
    const { run, host, spec, chunkSink } = invocation;
    if (run === undefined || invocation.control.cause !== undefined) return;
    const iteration = turn.toolIterations++;
    if (run.detached === undefined && wantsSnapshot(invocation, 'toolIterationEnd', iteration)) {
      const snapshotId = host.newId();
      const totals = totalsOf(invocation, turn);
      await commit(
        invocation,
        run,
        { snapshotCreated: snapshotId },
        {
          snapshotId,
          event: 'toolIterationEnd',
          status: 'succeeded',
          usage: turn.usage,
          toolCalls: turn.toolCalls,
          ...(totals && { totals }),
          end: false,
        },
      );
      noteSnapshot(invocation, snapshotId);
      turn.hasSnapshots = true;
    } else if (run.log.durable && spec.recovery === 'checkpoint') {
      await checkpoint(invocation, run, true);
    }
    chunkSink.log = run.log;
  });
}

/** The end of the invocation: what changed after the last turn is saved, as a snapshot if the policy says so. */
export async function finishInvocation(
  invocation: InvocationState,
  /** What the handler's result says. */
  finishReason?: FinishReason,
): Promise<void> {
  const { turn, control, ending } = invocation;
  if (turn !== undefined) await endUnworkedTurn(invocation, turn, finishReason);
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
    // Taken over with nothing left to do.
    await dropRun(invocation, run);
  } else if (!ended && invocation.progress.turnsBegun > 0) {
    await invocation.locked(() => saveInvocationEnd(invocation));
  }
}

/** The handler never came to its turn loop. */
async function endUnworkedTurn(
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
  const ended = await finishTurn(invocation, turn, outcome);
  if (ended.kind === 'failed') ending.failure = ended.error;
  if (ended.kind === 'elsewhere') invocation.followElsewhere(ended.output);
}

async function saveInvocationEnd(invocation: InvocationState): Promise<void> {
  const { spec, host, position, ending } = invocation;
  const { turnIndex } = position;
  if (spec.store === undefined) return;
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

/** Whether an event is to become a snapshot: the state must differ from the last one's, and the policy must want it. */
function wantsSnapshot(
  invocation: InvocationState,
  event: SnapshotEvent,
  eventIndex: number,
): boolean {
  const { spec, working, position } = invocation;
  const { policyBase } = invocation.lineage;
  if (spec.store === undefined || policyBase?.hash === working.hash()) return false;
  const candidate = new StateCandidate({
    event,
    state: working.state,
    prevState: policyBase?.state,
    index: position.nextIndex,
    turnIndex: position.turnIndex,
    eventIndex,
  });
  try {
    return decided(spec, spec.policy(candidate));
  } catch (error) {
    invocation.failures.report(error, 'policy');
    throw error;
  }
}

function decided({ name }: AgentSpec, wanted: unknown): boolean {
  if (wanted instanceof Promise) {
    wanted.catch(() => {});
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      `The snapshot policy of agent "${name}" returned a promise. Make it synchronous: return true or false.`,
    );
  }
  return Boolean(wanted);
}

function noteSnapshot({ progress, turn }: InvocationState, id: string): void {
  progress.snapshotIds.push(id);
  turn?.snapshotIds.push(id);
}

/** From now on the session continues from the state as it is. */
function endWell(invocation: InvocationState): void {
  invocation.lineage = endedWith(invocation.lineage, invocation.working);
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
