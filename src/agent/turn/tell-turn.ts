import { count, hasMetrics } from '../../core/metrics.ts';
import { attributes as names } from '../../core/trace-names.ts';
import type { FinishReason, Usage } from '../../protocol/turn.ts';
import { writeLog } from '../spec/logger.ts';
import type { InvocationState } from './invocation-state.ts';
import type { Outcome, Turn } from './turn-state.ts';

/** Counts a turn that has ended, and logs it. */
export function tellTurn(
  { spec, host, position, scope, run }: InvocationState,
  turn: Turn,
  outcome: Outcome,
  durationMs: number,
): void {
  const finishReason = finishReasonOf(outcome);
  if (hasMetrics()) {
    count('waymark.turns', 1, { [names.agent]: spec.name, [names.finishReason]: finishReason });
  }
  if (host.logger === undefined) return;
  const { usage, info, snapshotIds } = turn;
  const { inputTokens, outputTokens, cost } = usage;
  const fields = {
    agent: spec.name,
    sessionId: position.sessionId,
    turnIndex: info.turnIndex,
    ...(scope.owner !== undefined && { owner: scope.owner }),
    ...((snapshotIds.at(-1) ?? run?.runId) !== undefined && {
      snapshotId: snapshotIds.at(-1) ?? run?.runId,
    }),
    finishReason,
    durationMs: Math.round(durationMs),
    ...(inputTokens !== undefined && { inputTokens }),
    ...(outputTokens !== undefined && { outputTokens }),
    ...(cost && { cost }),
  };
  writeLog(host.logger, 'info', fields, `turn ${info.turnIndex} of ${spec.name}: ${finishReason}`);
}

/** Logs a model call, for those who want to know. */
export function tellModelCall(
  { spec, host, position }: InvocationState,
  call: { readonly model: string; readonly finishReason: FinishReason; readonly usage: Usage },
): void {
  if (host.logger === undefined) return;
  const { model, finishReason, usage } = call;
  const { inputTokens, outputTokens, cost } = usage;
  const fields = {
    agent: spec.name,
    sessionId: position.sessionId,
    model,
    finishReason,
    ...(inputTokens !== undefined && { inputTokens }),
    ...(outputTokens !== undefined && { outputTokens }),
    ...(cost && { cost }),
  };
  writeLog(host.logger, 'debug', fields, `model ${model}: ${finishReason}`);
}

function finishReasonOf(outcome: Outcome): string {
  switch (outcome.kind) {
    case 'done':
      return outcome.finishReason;
    case 'stopped':
      return 'aborted';
    case 'elsewhere':
      return outcome.output.finishReason ?? 'unknown';
    default:
      return outcome.kind;
  }
}
