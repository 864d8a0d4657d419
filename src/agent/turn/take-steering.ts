import { waitAtMost } from '../../core/time/timers.ts';
import type { Message } from '../../protocol/message.ts';
import { inboxLimits, type SteeringMessage } from '../../store/contract/store.ts';
import { type AgentSpec, fullStore } from '../spec/spec.ts';
import type { ActiveRun } from './active-run.ts';
import type { InvocationState } from './invocation-state.ts';
import { steeredBy, withSteeredId } from './steered-message.ts';
import { whileHolding } from './while-holding.ts';

/** Whether messages can be sent to the running turns of this agent. */
export function isSteerable({ spec }: { readonly spec: AgentSpec }): boolean {
  return fullStore(spec)?.runs?.readInbox !== undefined;
}

/** Whether a turn takes its whole inbox before it ends. A custom handler takes messages when it wants to. */
export function takesInbox({ spec }: { readonly spec: AgentSpec }): boolean {
  return spec.recovery === 'checkpoint' && isSteerable({ spec });
}

/** Whether the inbox may have messages that a run has not taken: the store says so, and is asked for them only then. */
export function mayBeSteered(
  { spec }: { readonly spec: AgentSpec },
  { steering, turnBase }: ActiveRun,
): boolean {
  return steering.isHinted && turnBase.run !== undefined && isSteerable({ spec });
}

/** Whether there may be messages for a turn that takes its whole inbox. */
export function hasSteering({ spec, run }: InvocationState): boolean {
  return run !== undefined && mayBeSteered({ spec }, run) && takesInbox({ spec });
}

/** How long a hint is waited for that is just being looked up. A store that takes longer may be away. */
const mostLookMs = 100;

/** Takes what has come for a turn that takes its whole inbox. */
export async function takeSteering(invocation: InvocationState): Promise<readonly Message[]> {
  const looking = invocation.run?.steering.looking;
  if (looking !== undefined) await waitAtMost(invocation.host.clock, mostLookMs, looking);
  return hasSteering(invocation) ? await takeMessages(invocation) : [];
}

/** Takes what has come for the turn of a custom handler. The handler has asked, so the store is asked. */
export async function takeForHandler(invocation: InvocationState): Promise<readonly Message[]> {
  if (invocation.run !== undefined) invocation.run.steering.isHinted = true;
  return await takeMessages(invocation);
}

/** Moves the messages of the inbox to the state, and returns them. */
async function takeMessages(invocation: InvocationState): Promise<readonly Message[]> {
  const { run, control } = invocation;
  if (run === undefined || control.cause !== undefined) return [];
  const messages = await whileHolding(invocation, () => readSteering(invocation, run));
  return invocation.control.cause === undefined ? addSteering(invocation, run, messages) : [];
}

/** The messages of the inbox that the state does not have. */
async function readSteering(
  invocation: InvocationState,
  run: ActiveRun,
): Promise<readonly SteeringMessage[]> {
  const { steering, turnBase, runId } = run;
  const ref = turnBase.run;
  if (ref === undefined || !mayBeSteered(invocation, run)) return [];
  steering.isHinted = false;
  const inbox = (await fullStore(invocation.spec)?.runs?.readInbox?.(ref)) ?? [];
  if (steering.isUnread === true) recall(invocation, steering.taken, inbox, runId);
  steering.isUnread = false;
  return inbox.filter((message) => !steering.taken.has(keyOf(message, runId)));
}

/** The messages that earlier turns have left. The running turn takes its own messages later. */
export async function readLeft(
  invocation: InvocationState,
  run: ActiveRun,
): Promise<readonly SteeringMessage[]> {
  const messages = await readSteering(invocation, run);
  const left = messages.filter(({ runId }) => runId !== undefined);
  if (left.length < messages.length) run.steering.isHinted = true;
  return left;
}

/** Notes how many messages the inbox had at a checkpoint: notifications of them may still be on their way. */
export function noteInbox({ steering, runId }: ActiveRun, inbox = 0): void {
  if (inbox === 0) return;
  const own = [...steering.taken].filter((key) => key.startsWith(`${runId} `)).length;
  if (inbox > own) steering.isHinted = true;
}

/** Adds messages of the inbox to the state. */
export function addSteering(
  { working, chunkSink }: InvocationState,
  { steering, runId }: ActiveRun,
  inbox: readonly SteeringMessage[],
): readonly Message[] {
  const messages = inbox.map(({ id, message, runId: sentTo = runId }) =>
    withSteeredId(message, { id, runId: sentTo }),
  );
  if (messages.length === 0) return [];
  working.addMessages(messages);
  for (const message of inbox) steering.taken.add(keyOf(message, runId));
  for (const message of messages) chunkSink.push({ steered: message });
  return messages;
}

/** After a takeover: the messages of the inbox that the last checkpoint has stay. */
function recall(
  { working }: InvocationState,
  taken: Set<string>,
  inbox: readonly SteeringMessage[],
  runId: string,
): void {
  const { history } = working.state;
  const known = new Set<string>();
  for (let at = 0; at < history.length; at++) {
    const steered = steeredBy(history.at(at));
    if (steered !== undefined) known.add(keyOf(steered, runId));
  }
  for (const message of inbox) {
    const key = keyOf(message, runId);
    if (known.has(key)) taken.add(key);
  }
}

// Ids are chosen by senders, each for one run.
function keyOf(
  { id, runId }: { readonly id: string; readonly runId?: string },
  current: string,
): string {
  return `${runId ?? current} ${id}`;
}

/** How many messages of its inbox a turn has that ends without the rest of them. */
export function leavingInbox(
  invocation: InvocationState,
  { steering }: ActiveRun,
): { readonly steered?: number; readonly leavesInbox?: true } {
  if (!isSteerable(invocation)) return {};
  // A run that no worker could continue leaves nothing: one of its messages may be the reason.
  const isGivenUp = steering.isUnread === true && invocation.progress.turnsBegun === 0;
  const steered = isGivenUp ? inboxLimits.messages : steering.taken.size;
  return { steered, leavesInbox: true };
}
