import { pendingInterrupts } from '../../protocol/messages/tool-round.ts';
import type { InvocationState } from './invocation-state.ts';
import { lastRound } from './turn-state.ts';

/**
 * Tells the app that a saved turn waits for an answer. The caller does not wait for the listener. What waits inside a sub-agent is
 * told once, by the turn that called it and takes the answer.
 */
export function tellInterrupt(invocation: InvocationState, runId: string): void {
  const { host, spec, scope, position, working, failures, request } = invocation;
  const { onInterrupt } = host;
  const requests = pendingInterrupts(lastRound(working.state.history));
  if (onInterrupt === undefined || requests.length === 0 || request.parent !== undefined) return;
  const event = {
    agent: spec.name,
    ...(scope.owner !== undefined && { owner: scope.owner }),
    sessionId: position.sessionId,
    runId,
    requests,
  };
  const told = (async () => onInterrupt(event))();
  host.background(told.catch((error: unknown) => failures.report(error, 'hook')));
}
