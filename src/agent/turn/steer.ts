import { failedPrecondition, invalid, WaymarkError } from '../../core/error.ts';
import { isJsonObject } from '../../core/json/json.ts';
import { waitAtMost } from '../../core/time.ts';
import type { Message } from '../../protocol/message.ts';
import type { SteerResult } from '../../protocol/requests.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { Input } from '../../protocol/turn.ts';
import { inboxLimits, type Scope, type SteeringMessage } from '../../store/contract/store.ts';
import type { AgentSpec } from '../contract/spec.ts';
import type { AgentHost } from '../persistence/host.ts';
import { checkPromptInput } from './inputs.ts';
import type { InvocationState } from './invocation-state.ts';
import { markingLost } from './stop.ts';
import type { ActiveRun } from './turn-state.ts';

export function isSteerable({ spec }: { readonly spec: AgentSpec }): boolean {
  return spec.store?.runs?.readInbox !== undefined;
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

/** Longest wait in milliseconds for the lookup of a hint. A store that takes longer may be away. */
const maxLookupMs = 100;

/** Takes the messages for a turn that takes its whole inbox. */
export async function takeSteering(invocation: InvocationState): Promise<readonly Message[]> {
  const looking = invocation.run?.steering.looking;
  if (looking !== undefined) await waitAtMost(invocation.host.clock, maxLookupMs, looking);
  return hasSteering(invocation) ? await takeMessages(invocation) : [];
}

/** Takes the messages for the turn of a custom handler, which has asked for them: the store is read even without a hint. */
export async function takeForHandler(invocation: InvocationState): Promise<readonly Message[]> {
  if (invocation.run !== undefined) invocation.run.steering.isHinted = true;
  return await takeMessages(invocation);
}

/** Moves the messages of the inbox to the state, and returns them. */
async function takeMessages(invocation: InvocationState): Promise<readonly Message[]> {
  const { run, control } = invocation;
  if (run === undefined || control.cause !== undefined) return [];
  const messages = await markingLost(invocation, () => readSteering(invocation, run));
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
  const inbox = (await invocation.spec.store?.runs?.readInbox?.(ref)) ?? [];
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

export function addSteering(
  { working, chunkSink }: InvocationState,
  { steering, runId }: ActiveRun,
  inbox: readonly SteeringMessage[],
): readonly Message[] {
  // As the state keeps them: a retry of the sender finds out whether a message was taken.
  const messages = inbox.map(({ id, message, runId: sentTo = runId }) => ({
    ...message,
    metadata: { ...message.metadata, steered: { id, runId: sentTo } },
  }));
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

/** The number of inbox messages that a turn has taken, when it ends without the rest. */
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

/** Adds the message of an input to the inbox of a run, wherever it is worked on. */
export async function steerRun(
  { spec, host, scope }: { spec: AgentSpec; host: AgentHost; scope: Scope },
  runId: string | undefined,
  input: Input,
): Promise<SteerResult> {
  const { store } = spec;
  if (!isSteerable({ spec }) || store?.runs?.steer === undefined) throw cannotSteer(spec);
  checkPromptInput(input);
  const { message, requestId: id = host.newId() } = input;
  if (message === undefined) {
    throw invalid(
      'Only a message can be added to a running turn. Answer an interrupt with `resume`.',
    );
  }
  if (runId === undefined) throw ended();
  if (await store.runs.steer(scope, runId, { id, message })) return { id, status: 'queued' };
  const snapshot = await store.getSnapshot(scope, { snapshotId: runId });
  if (snapshot === undefined) {
    throw new WaymarkError(
      'NOT_FOUND',
      `There is no run "${runId.slice(0, 64)}" of agent "${spec.name}".`,
    );
  }
  const { sessionId } = snapshot;
  const keeps = spec.concurrency === 'wait';
  // In this order: the message leaves the inbox in the write that makes it part of the head.
  const left = (keeps && (await store.runs.readLeftInbox?.(scope, sessionId))) || [];
  if (left.some((each) => each.id === id && each.runId === runId)) return { id, status: 'next' };
  const sent = { id, runId };
  if (hasTaken(snapshot, sent)) return { id, status: 'taken' };
  const head = keeps ? await store.getSnapshot(scope, { sessionId }) : undefined;
  if (hasTaken(head, sent)) return { id, status: 'taken' };
  throw ended();
}

function hasTaken(
  snapshot: Snapshot | undefined,
  { id, runId }: { readonly id: string; readonly runId: string },
): boolean {
  const messages = snapshot?.state?.messages ?? [];
  return messages.some((message) => {
    const steered = steeredBy(message);
    return steered?.id === id && steered.runId === runId;
  });
}

function ended(): WaymarkError {
  return failedPrecondition(
    'The turn has ended, or is being stopped, and has not taken the message. Send it as the next turn.',
  );
}

function cannotSteer(spec: AgentSpec): WaymarkError {
  return failedPrecondition(
    `Nothing can be added to a running turn of agent "${spec.name}": its store has no inboxes. Use a store that has, such as sqliteStore.`,
  );
}

interface Steered {
  readonly id: string;
  readonly runId: string;
}

/** Where a message came from; `undefined` if it was not added to a running turn. */
export function steeredBy(message: Message | undefined): Steered | undefined {
  const steered = message?.metadata?.steered;
  if (!isJsonObject(steered)) return undefined;
  const { id, runId } = steered;
  return typeof id === 'string' && typeof runId === 'string' ? { id, runId } : undefined;
}
