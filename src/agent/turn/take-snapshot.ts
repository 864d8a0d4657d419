import { WaymarkError } from '../../core/error.ts';
import type { SnapshotEvent } from '../../protocol/snapshot.ts';
import { StateCandidate } from '../../session/policy.ts';
import { isSameState } from '../../session/session-state.ts';
import type { AgentSpec } from '../spec/spec.ts';
import { checkpoint, commit } from './commit.ts';
import type { InvocationState } from './invocation-state.ts';
import { endedWith } from './lineage.ts';
import { totalsOf } from './turn-limits.ts';
import type { Turn } from './turn-state.ts';

/** After all tools of one model message: takes a snapshot if the policy wants one, else a checkpoint if the run is durable. */
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

/** Whether the state is that of the last snapshot. */
export function isAtSnapshot({ lineage: { policyBase }, working }: InvocationState): boolean {
  return policyBase !== undefined && isSameState(policyBase.state, working.state);
}

/** Whether to take a snapshot: the state must differ from the last one, and the policy must want it. */
export function wantsSnapshot(
  invocation: InvocationState,
  event: SnapshotEvent,
  eventIndex: number,
): boolean {
  const { spec, working, position } = invocation;
  const { policyBase } = invocation.lineage;
  if (spec.store === undefined || isAtSnapshot(invocation)) return false;
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

/** Adds a snapshot to those of the invocation and the turn. */
export function noteSnapshot({ progress, turn }: InvocationState, id: string): void {
  progress.snapshotIds.push(id);
  turn?.snapshotIds.push(id);
}

/** From now on the session continues from the state as it is. */
export function endWell(invocation: InvocationState): void {
  invocation.lineage = endedWith(invocation.lineage, invocation.working.state);
}
