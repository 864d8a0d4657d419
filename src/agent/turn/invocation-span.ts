import { inSpan } from '../../core/trace.ts';
import { genAi, attributes as names, operations } from '../../core/trace-names.ts';
import type { Output } from '../../protocol/turn.ts';
import type { InvocationState } from './invocation-state.ts';

/** Traces an invocation under the name of its agent, joined to the session and to the snapshot it has come to. */
export function inInvocationSpan(
  invocation: InvocationState,
  work: () => Promise<Output>,
): Promise<Output> {
  const { spec } = invocation;
  const { sessionId } = invocation.position;
  return inSpan(
    `${operations.invokeAgent} ${spec.name}`,
    {
      attributes: {
        [genAi.operation]: operations.invokeAgent,
        [genAi.agentName]: spec.name,
        [genAi.agentDescription]: spec.description,
        [genAi.conversationId]: sessionId,
        [names.sessionId]: sessionId,
        [names.genkitAgent]: spec.name,
      },
    },
    async (span) => {
      const output = await work();
      const { run, progress, ending } = invocation;
      const { failedId, failure } = ending;
      const lastId = failedId ?? progress.snapshotIds.at(-1);
      const made = run?.detached === undefined ? lastId : run.runId;
      // A failed turn is a result, but what was asked for was not done.
      if (failure !== undefined) span.recordError(failure);
      span.setAttributes({ [names.snapshotId]: made, [names.genkitSnapshotId]: made });
      return output;
    },
  );
}
