import * as v from 'valibot';
import { WaymarkError } from '../../core/error.ts';
import type { RetryResult } from '../../protocol/requests.ts';
import { type DeadRun, deadRun } from '../../protocol/run.ts';
import type { DeadRunRecord, RunSupport, Scope } from '../../store/contract/store.ts';
import type { Agent } from '../spec/agent.ts';
import { noDeadRun } from '../spec/dispatcher.ts';

const details = v.object({ attempts: deadRun.entries.attempts });

/** A run of the dead-letter queue as its owner sees it. */
export function toDeadRun({ runId, sessionId, scope, since, error }: DeadRunRecord): DeadRun {
  const found = v.safeParse(details, error?.details);
  const attempts = found.success ? found.output.attempts : [];
  return { snapshotId: runId, sessionId, agent: scope.agent, attempts, since };
}

/**
 * Starts a run of the dead-letter queue again, with the inputs that it had not done, as a new run of its session. It stays in the
 * list until the new one is accepted.
 */
export async function retryDeadRun(
  agent: Agent,
  runs: RunSupport | undefined,
  scope: Scope,
  runId: string,
): Promise<RetryResult> {
  const found = (await runs?.listDeadRuns?.(scope))?.find((each) => each.runId === runId);
  if (found === undefined) throw noDeadRun(runId);
  const { sessionId, inputs, inputsDone, context } = found;
  const connection = agent.streamBidi({
    sessionId,
    ...(scope.owner !== undefined && { owner: scope.owner }),
    ...(context && { context }),
  });
  // The request ids stay with the dead run: a repeated request gets its failure.
  const left = inputs.slice(inputsDone).map(({ requestId: _, ...input }) => input);
  for (const each of left.slice(0, -1)) await connection.send(each);
  const { snapshotId } = await connection.detach(left.at(-1));
  if (snapshotId === undefined) {
    throw new WaymarkError('FAILED_PRECONDITION', `The run "${runId}" has nothing left to do.`);
  }
  await runs?.dropDeadRun?.(scope, runId);
  return { snapshotId, sessionId };
}
