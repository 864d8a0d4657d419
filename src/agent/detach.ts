import { toErrorBody } from '../core/error.ts';
import type { SnapshotStatus } from '../protocol/snapshot.ts';
import type { Output } from '../protocol/turn.ts';
import { checkpoint, commit, endChunk, stateWrite } from './commit.ts';
import type { ActiveRun, Invocation } from './invocation.ts';
import { fullStore } from './spec.ts';
import type { Outcome, Turn } from './turn-state.ts';

/** What the caller who detached is told. */
export function detachedOutput({ sessionId, run, snapshotIds }: Invocation): Output {
  return {
    sessionId,
    ...(run && { snapshotId: run.runId }),
    snapshotIds: [...snapshotIds],
    finishReason: 'detached',
  };
}

/** The end of one turn of a detached run: no snapshot, only a checkpoint when another input follows. */
export async function endDetachedTurn(
  invocation: Invocation,
  run: ActiveRun,
  turn: Turn,
  outcome: Outcome,
): Promise<Outcome> {
  if (outcome.kind !== 'done') return outcome;
  invocation.last = {
    finishReason: outcome.finishReason,
    ...(outcome.output !== undefined && { output: outcome.output }),
  };
  invocation.good = invocation.working.state;
  run.log.push(endChunk(turn, outcome.finishReason));
  if (run.detached !== undefined) run.detached.inputsDone++;
  if (invocation.inbox.queued.length > 0) await checkpoint(invocation, run, false);
  return outcome;
}

/** The end of a detached run: its pending snapshot gets its terminal status, unless an abort was first. */
export async function finishDetached(invocation: Invocation, run: ActiveRun): Promise<void> {
  const { control, failure, host, spec, turnIndex } = invocation;
  const lost = control.cause?.kind === 'lost';
  run.leave();
  try {
    if (lost) await keepPartial(invocation, run);
    else {
      const status = statusOf(invocation);
      const chunk =
        status === 'succeeded'
          ? {}
          : {
              turnEnd: {
                finishReason: status === 'failed' ? ('failed' as const) : ('aborted' as const),
              },
            };
      invocation.turnIndex = Math.max(0, turnIndex);
      const { snapshot } = await commit(invocation, run, chunk, {
        snapshotId: run.runId,
        event: 'detach',
        status,
        ...(status === 'succeeded' &&
          invocation.last && { finishReason: invocation.last.finishReason }),
        ...(status === 'failed' && { finishReason: 'failed' }),
        ...(status === 'aborted' && { finishReason: 'aborted' }),
        ...(failure && { error: toErrorBody(failure) }),
        usage: invocation.usage,
        end: true,
      });
      await tell(invocation, snapshot);
    }
  } catch (error) {
    // Another worker, or the next start of this one, goes on with the run.
    invocation.failure ??= failure;
    host.report?.(error, { agent: spec.name, runId: run.runId });
  } finally {
    host.logs.close(run.log);
  }
}

function statusOf({
  failure,
  control,
}: Invocation): Exclude<SnapshotStatus, 'pending' | 'expired'> {
  if (failure !== undefined || control.cause?.kind === 'failed') return 'failed';
  return control.cause === undefined ? 'succeeded' : 'aborted';
}

async function keepPartial(invocation: Invocation, run: ActiveRun): Promise<void> {
  const { working, spec } = invocation;
  const ref = run.position.run;
  if (ref === undefined) return;
  await fullStore(spec)?.runs?.attachPartial(ref, {
    ...stateWrite(invocation),
    stateHash: working.hash(),
  });
}

async function tell(
  { spec, host, scope }: Invocation,
  snapshot: Parameters<NonNullable<Invocation['spec']['onFinish']>>[0]['snapshot'],
): Promise<void> {
  try {
    await spec.onFinish?.({
      agent: spec.name,
      ...(scope.owner !== undefined && { owner: scope.owner }),
      snapshot,
    });
  } catch (error) {
    host.report?.(error, { agent: spec.name, runId: snapshot.snapshotId });
  }
}
