import type { RunInfo } from '../../protocol/run.ts';
import type { RunRecord } from '../../store/contract/store.ts';
import type { AgentSpec } from '../spec/spec.ts';
import type { AgentHost } from './host.ts';
import { createChunkTransform } from './transform.ts';

/** A run as it may be shown, with the last status it sent where this process knows it. */
export function toRunInfo(
  run: RunRecord,
  { transform }: Pick<AgentSpec, 'transform'>,
  { logs }: Pick<AgentHost, 'logs'>,
): RunInfo {
  const sent = logs.get(run.runId, run.scope)?.status;
  const status =
    sent === undefined ? undefined : createChunkTransform(transform)({ status: sent })?.status;
  return {
    snapshotId: run.runId,
    sessionId: run.sessionId,
    agent: run.scope.agent,
    ...(run.version !== undefined && { version: run.version }),
    mode: run.mode,
    attempt: run.attempt,
    inputs: run.inputs.length,
    inputsDone: run.inputsDone,
    createdAt: run.createdAt,
    heartbeatAt: run.heartbeatAt,
    expired: run.expired,
    stopping: run.stopping,
    ...(status !== undefined && { status }),
  };
}
