import { toErrorBody } from '../../core/error.ts';
import { count, hasMetrics, recordValue } from '../../core/metrics.ts';
import { inSpan, type SpanAttributes } from '../../core/trace.ts';
import { backend, genAi, attributes as names, operations } from '../../core/trace-names.ts';
import { tracedModel } from '../../generate/answer/model-telemetry.ts';
import type { Output } from '../../protocol/turn.ts';
import type { InvocationState } from './invocation-state.ts';

/** Traces an invocation under the name of its agent, joined to the session and to the snapshot it has come to. */
export function inInvocationSpan(
  invocation: InvocationState,
  work: () => Promise<Output>,
): Promise<Output> {
  const { spec, host, scope } = invocation;
  const { sessionId } = invocation.position;
  const attributes = (): SpanAttributes => ({
    [genAi.operation]: operations.invokeAgent,
    [genAi.agentName]: spec.name,
    [genAi.agentDescription]: spec.description,
    [genAi.agentVersion]: spec.version,
    [genAi.conversationId]: sessionId,
    [backend.sessionId]: sessionId,
    [backend.userId]: host.telemetry.userId === true ? scope.owner : undefined,
    [names.sessionId]: sessionId,
    [names.genkitAgent]: spec.name,
  });
  const options = { attributes, owner: scope.owner };
  return inSpan(`${operations.invokeAgent} ${spec.name}`, options, async (span) => {
    const startedAt = performance.now();
    const agent = { [names.agent]: spec.name };
    count('waymark.active_runs', 1, agent);
    try {
      const output = await work();
      const { run, progress, ending } = invocation;
      const { failedId, failure } = ending;
      const lastId = failedId ?? progress.snapshotIds.at(-1);
      const made = run?.detached === undefined ? lastId : run.runId;
      // A failed turn is a result, but what was asked for was not done.
      if (failure !== undefined) span.recordError(failure);
      if (span.recording) {
        const snapshots = { [names.snapshotId]: made, [names.genkitSnapshotId]: made };
        span.setAttributes({ ...usedAttributes(invocation), ...snapshots });
      }
      return output;
    } finally {
      count('waymark.active_runs', -1, agent);
      if (hasMetrics()) recordEnd(invocation, (performance.now() - startedAt) / 1000);
    }
  });
}

function usedAttributes({ progress, lastModel, ending }: InvocationState): SpanAttributes {
  const { usage } = progress;
  const model = lastModel && tracedModel(lastModel);
  return {
    [genAi.provider]: model?.provider,
    [genAi.requestModel]: model?.id,
    [genAi.inputTokens]: usage.inputTokens,
    [genAi.outputTokens]: usage.outputTokens,
    [genAi.cacheReadTokens]: usage.cachedInputTokens,
    [genAi.cacheWriteTokens]: usage.cacheWriteTokens,
    [genAi.cacheCreationTokens]: usage.cacheWriteTokens,
    [genAi.reasoningTokens]: usage.reasoningTokens,
    ...(ending.last && { [genAi.finishReasons]: [ending.last.finishReason] }),
  };
}

function recordEnd({ spec, lastModel, ending }: InvocationState, seconds: number): void {
  const { failure } = ending;
  recordValue('gen_ai.invoke_agent.duration', seconds, {
    [genAi.operation]: operations.invokeAgent,
    [genAi.agentName]: spec.name,
    [genAi.requestModel]: lastModel && tracedModel(lastModel).id,
    ...(failure && { [names.errorType]: toErrorBody(failure).status }),
  });
}
