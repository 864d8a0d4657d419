import { subAgentRequests, toSubAgentResume } from '../../api/interrupts.ts';
import { WaymarkError } from '../../core/error.ts';
import { isJsonObject, type Json } from '../../core/json/json.ts';
import { checkAnswers, planResume } from '../../generate/tool/resume.ts';
import type { ToolRequestPart } from '../../protocol/message.ts';
import { isInterrupted, openToolRequests, requestKey } from '../../protocol/messages.ts';
import { parseShape } from '../../protocol/parse.ts';
import { type Output, type Resume, resume as resumeShape } from '../../protocol/turn.ts';
import type { InvokeOptions } from '../spec/agent.ts';
import type { InvocationState } from '../turn/invocation-state.ts';
import { lastRound } from '../turn/turn-state.ts';
import type { AgentInternals } from './create-agent.ts';

export type Start = Pick<InvokeOptions, 'snapshotId' | 'sessionId' | 'state'>;

/** Refuses answers that the sub-agent would refuse, so that its interrupts stay open. */
export async function checkInnerAnswers(
  { spec }: AgentInternals,
  resumed: Json,
  interrupted: Json,
): Promise<void> {
  // Something else waited before the sub-agent was called, such as an approval.
  if (!isPlace(interrupted)) return;
  const resume = toInnerResume(spec.name, resumed, interrupted);
  const requests = subAgentRequests(interrupted);
  const tools = await spec.tools?.().catch(() => undefined);
  if (tools && requests.every(({ toolRequest }) => tools.has(toolRequest.name))) {
    await planResume([{ role: 'model', content: [...requests] }], resume, tools);
  } else {
    // Tools that only a call of the agent has are checked by that call.
    checkWithoutTools(requests, resume);
  }
}

/** Refuses answers to other requests than these, and to others than those that wait inside them. */
function checkWithoutTools(requests: readonly ToolRequestPart[], resume: Resume): void {
  // A custom agent need not show what it waits for.
  if (requests.length === 0) return;
  for (const answer of checkAnswers([{ role: 'model', content: [...requests] }], resume)) {
    if (!('entry' in answer) || !('toolRequest' in answer.entry)) continue;
    const interrupted = answer.request.metadata?.interrupt;
    if (!isPlace(interrupted)) continue;
    const inner = toInnerResume(
      interrupted.agent,
      answer.entry.metadata?.resumed ?? true,
      interrupted,
    );
    checkWithoutTools(subAgentRequests(interrupted), inner);
  }
}

/** The answers for the sub-agent in those for the call of its tool. */
export function toInnerResume(agent: string, resumed: Json, interrupted: Json): Resume {
  const given = toSubAgentResume(resumed, interrupted);
  return parseShape(resumeShape, given, `resume of sub-agent "${agent}"`);
}

/** Where the sub-agent stopped to wait, as its interrupt in the parent's conversation says. */
export function waitingPlace(
  parent: InvocationState | undefined,
  agent: string,
  ref: string,
): Start {
  const open =
    parent === undefined ? [] : openToolRequests(lastRound(parent.working.state.history));
  for (const { toolRequest, metadata } of open) {
    const payload = metadata?.interrupt;
    if ((toolRequest.ref ?? toolRequest.name) !== ref || !isPlace(payload)) continue;
    if (payload.agent !== agent) continue;
    const { snapshotId, state } = payload;
    return snapshotId === undefined ? { ...(state && { state }) } : { snapshotId };
  }
  throw new WaymarkError(
    'FAILED_PRECONDITION',
    `Sub-agent "${agent}" is not waiting for this answer. Restart the request that carries its interrupt.`,
  );
}

interface Place {
  readonly agent: string;
  readonly snapshotId?: string;
  readonly state?: NonNullable<Start['state']>;
}

/** Whether a call waits for something inside a sub-agent, rather than for an approval of the call. */
export function isPlace(payload: Json | undefined): payload is Json & Place {
  return (
    isJsonObject(payload) && typeof payload.agent === 'string' && Array.isArray(payload.requests)
  );
}

/** The interrupts that the output of a sub-agent waits for. */
export function interruptsOf({ message }: Output): readonly ToolRequestPart[] {
  const seen = new Set<string>();
  return (message?.content ?? []).filter((part): part is ToolRequestPart => {
    if (!('toolRequest' in part) || !isInterrupted(part) || seen.has(requestKey(part.toolRequest)))
      return false;
    seen.add(requestKey(part.toolRequest));
    return true;
  });
}
