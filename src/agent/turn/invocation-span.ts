import { inSpan } from '../../core/trace.ts';
import { genAi, attributes as names, operations } from '../../core/trace-names.ts';
import type { Output } from '../../protocol/turn.ts';
import type { Invocation } from './invocation.ts';

/** Traces an invocation under the name of its agent, joined to the session and to the snapshot it has come to. */
export function inInvocationSpan(
  invocation: Invocation,
  work: () => Promise<Output>,
): Promise<Output> {
  const { spec, sessionId } = invocation;
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
      const { run, snapshotIds, failedId, failure } = invocation;
      const made = run?.detached === undefined ? (failedId ?? snapshotIds.at(-1)) : run.runId;
      // A failed turn is a result, but what was asked for was not done.
      if (failure !== undefined) span.recordError(failure);
      span.setAttributes({ [names.snapshotId]: made, [names.genkitSnapshotId]: made });
      return output;
    },
  );
}
