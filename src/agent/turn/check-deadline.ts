import { WaymarkError } from '../../core/error.ts';
import { toolReplay } from '../../generate/tool-replay.ts';
import { pendingInterrupts, requestKey } from '../../protocol/messages/tool-round.ts';
import type { Input } from '../../protocol/turn.ts';
import type { InvocationState } from './invocation-state.ts';
import { lastRound } from './turn-state.ts';

/**
 * Refuses an answer that comes after the deadline of its interrupt, unless it declines. The answer to a sub-agent was checked when
 * the turn was accepted that passes it on, and a replayed one when it was recorded.
 */
export function checkDeadline({ host, working, request }: InvocationState, input: Input): void {
  const { resume } = input;
  if (resume === undefined || request.startedBy !== undefined) return;
  if (toolReplay.get() !== undefined) return;
  const { respond = [], restart = [] } = resume;
  const approved = new Set([
    ...respond
      .filter(({ metadata }) => (metadata?.declined ?? false) === false)
      .map(({ toolResponse }) => requestKey(toolResponse)),
    ...restart.map(({ toolRequest }) => requestKey(toolRequest)),
  ]);
  const late = pendingInterrupts(lastRound(working.state.history)).find(
    ({ toolRequest, metadata }) =>
      approved.has(requestKey(toolRequest)) &&
      typeof metadata?.expiresAt === 'string' &&
      Date.parse(metadata.expiresAt) <= host.clock.now(),
  );
  if (late === undefined) return;
  throw new WaymarkError(
    'FAILED_PRECONDITION',
    `The interrupt of tool "${late.toolRequest.name}" expired at ${late.metadata?.expiresAt}: it is too late to approve or answer it. Decline it, or send another message.`,
  );
}
