import * as v from 'valibot';
import { subAgentRequests } from '../../api/interrupts.ts';
import { failedPrecondition, hasStatus } from '../../core/error.ts';
import { toolReplay } from '../../generate/hooks.ts';
import { latestDeadline } from '../../generate/tool/tool-context.ts';
import type { ToolRequestPart, ToolResponsePart } from '../../protocol/message.ts';
import { pendingInterrupts, requestKey } from '../../protocol/messages.ts';
import { type Input, type Resume, resume as resumeShape } from '../../protocol/turn.ts';
import type { History } from '../../session/history.ts';
import type { InvocationState } from './invocation-state.ts';
import { lastRound } from './turn-state.ts';

/** The name under which the deadlines of an agent's interrupts wait in the store. No agent of an app can have it. */
export const deadlineAgent = (agent: string): string => `waymark.deadlines/${agent}`;

/** The name in the claim of a deadline that waits: no worker holds it. */
export const deadlineWorker = 'deadline';

/**
 * Stores a run that waits until the deadline of the interrupts that a turn is about to end with; the engine then takes it over
 * and declines them. Stored before the turn is saved: without the turn it finds nothing to decline. Interrupts of a sub-agent
 * are declined with the call of its agent. A replayed turn has no deadline: a worker must not continue it.
 */
export async function armDeadline(invocation: InvocationState, snapshotId: string): Promise<void> {
  const { spec, host, scope, position, working, request } = invocation;
  const { runs } = spec.store ?? {};
  if (runs === undefined || request.startedBy !== undefined) return;
  if (toolReplay.get() !== undefined) return;
  const expiry = expiryOf(working.state.history);
  if (expiry === undefined) return;
  const { sessionId } = position;
  const claim = runs.claim(
    { ...scope, agent: deadlineAgent(spec.name) },
    {
      runId: host.newId(),
      sessionId: snapshotId,
      from: 'head',
      mode: 'accepted',
      worker: deadlineWorker,
      ttl: Math.max(1, expiry.at - host.clock.now()),
      init: { sessionId, snapshotId },
      inputs: [],
      context: request.context,
    },
  );
  await claim.catch((error: unknown) => {
    // Stored by an earlier attempt to save the turn, perhaps with an earlier deadline: it is compared with the saved turn then.
    if (!hasStatus(error, 'ABORTED')) throw error;
  });
}

/** The time at which the interrupts at the end of a history expire, and the input that declines them. */
export interface Expiry {
  /** In milliseconds. */
  readonly at: number;
  readonly decline: Input;
}

/** `undefined` if a history ends with no interrupt, or with one that waits forever. */
export function expiryOf(history: History): Expiry | undefined {
  const pending = pendingInterrupts(lastRound(history));
  const at = latestDeadline(pending);
  if (at === undefined) return undefined;
  const respond = pending.map(({ toolRequest: { name, ref } }) => ({
    toolResponse: { name, ...(ref !== undefined && { ref }) },
    metadata: { declined: true, expired: true },
  }));
  return { at, decline: { resume: { respond } } };
}

/**
 * Refuses an answer that comes after the deadline of its interrupt, unless it declines. The answer to a sub-agent was checked when
 * the turn was accepted that passes it on, and a replayed one when it was recorded.
 */
export function checkDeadline({ host, working, request }: InvocationState, resume: Resume): void {
  if (request.startedBy !== undefined) return;
  if (toolReplay.get() !== undefined) return;
  const late = pendingInterrupts(lastRound(working.state.history)).find(
    (asked) =>
      answersTo(resume, asked).some((answer) => !isDecline(answer, asked)) &&
      typeof asked.metadata?.expiresAt === 'string' &&
      Date.parse(asked.metadata.expiresAt) <= host.clock.now(),
  );
  if (late === undefined) return;
  throw failedPrecondition(
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
