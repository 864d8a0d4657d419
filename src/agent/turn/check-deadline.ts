import * as v from 'valibot';
import { subAgentRequests } from '../../api/interrupts.ts';
import { WaymarkError } from '../../core/error.ts';
import { toolReplay } from '../../generate/hooks.ts';
import type { ToolRequestPart, ToolResponsePart } from '../../protocol/message.ts';
import { pendingInterrupts, requestKey } from '../../protocol/messages/tool-round.ts';
import { type Input, type Resume, resume as resumeShape } from '../../protocol/turn.ts';
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
  const late = pendingInterrupts(lastRound(working.state.history)).find(
    (asked) =>
      answersTo(resume, asked).some((answer) => !isDecline(answer, asked)) &&
      typeof asked.metadata?.expiresAt === 'string' &&
      Date.parse(asked.metadata.expiresAt) <= host.clock.now(),
  );
  if (late === undefined) return;
  throw new WaymarkError(
    'FAILED_PRECONDITION',
    `The interrupt of tool "${late.toolRequest.name}" expired at ${late.metadata?.expiresAt}: it is too late to approve or answer it. Decline it, or send another message.`,
  );
}

type Answer = ToolRequestPart | ToolResponsePart;

function answersTo({ respond = [], restart = [] }: Resume, asked: ToolRequestPart): Answer[] {
  const key = requestKey(asked.toolRequest);
  return [...respond, ...restart].filter(
    (each) => requestKey('toolResponse' in each ? each.toolResponse : each.toolRequest) === key,
  );
}

/** Whether an answer declines: the call itself, or all that waits inside a sub-agent. */
function isDecline(answer: Answer, asked: ToolRequestPart): boolean {
  if ('toolResponse' in answer) return (answer.metadata?.declined ?? false) !== false;
  const inside = subAgentRequests(asked.metadata?.interrupt);
  const parsed = v.safeParse(resumeShape, answer.metadata?.resumed);
  if (inside.length === 0 || !parsed.success) return false;
  return inside.every((each) => {
    const answers = answersTo(parsed.output, each);
    return answers.length > 0 && answers.every((inner) => isDecline(inner, each));
  });
}
