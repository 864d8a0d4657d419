import type { Agent, CallOptions } from '../../agent/contract/agent.ts';
import { interruptsAtEnd, interruptsOf } from '../../api/interrupts.ts';
import type { Json } from '../../core/json/json.ts';
import type { Message } from '../../protocol/message.ts';
import type { State } from '../../protocol/state.ts';
import type { Output } from '../../protocol/turn.ts';
import type { FeedBatch, FeedEvent } from '../stream/feed.ts';
import { sseFormat, sseJson } from '../stream/stream-response.ts';
import { AguiEncoder, type RunPlace } from './encode.ts';
import { activityOf, shownCustom, toHistory } from './history.ts';
import { toAguiInterrupts } from './interrupts.ts';
import { type AguiEvent, type AguiMessage, protocolVersion } from './shapes.ts';

/** A thread as a client that connects finds it. */
export interface Thread extends Prelude {
  /** The run that is active. */
  readonly running: string | undefined;
  /** The interrupts of the thread, if nothing runs. */
  readonly interrupts: readonly object[];
  /** The client's id of the run that is shown last. */
  readonly runId: string | undefined;
  readonly headId: string | undefined;
}

/** Reads a thread; one that the caller does not have is empty, as one that has not begun. */
export async function readThread(
  agent: Agent,
  threadId: string,
  options: CallOptions,
): Promise<Thread> {
  const session = await agent.getSession(threadId, options);
  const { running, headId } = session ?? {};
  const head = session?.state as State | undefined;
  const state = running === undefined ? head : await startOf(agent, running, head, options);
  const stored = state?.messages ?? [];
  const { messages, exchanges } = toHistory(stored, running);
  const interrupts =
    running === undefined && headId !== undefined
      ? await toAguiInterrupts(agent, headId, interruptsAtEnd(stored))
      : [];
  return {
    messages: [...messages, ...(state?.artifacts ?? []).map(activityOf)],
    custom: shownCustom(agent, state),
    running,
    interrupts,
    runId: exchanges.at(-1)?.runId,
    headId,
  };
}

/** The state that a running turn has started from, with its input: what it says after that comes as events. */
async function startOf(
  agent: Agent,
  running: string,
  head: State | undefined,
  options: CallOptions,
): Promise<State | undefined> {
  const snapshot = await agent.getSnapshot({ snapshotId: running }, options);
  const pending = snapshot?.state as State | undefined;
  if (pending === undefined) return head;
  const messages = pending.messages ?? [];
  const before = head?.messages ?? [];
  const asked = messages.findLastIndex(({ role }) => role === 'user') + 1;
  // A turn that answers interrupts brings no message: it starts at the end of the head.
  const isAnswer = before.length >= asked && isPrefix(before, messages);
  return { ...(head ?? {}), messages: messages.slice(0, isAnswer ? before.length : asked) };
}

function isPrefix(before: readonly Message[], messages: readonly Message[]): boolean {
  const last = before.at(-1);
  const same = messages[before.length - 1];
  return last?.role === same?.role && last?.metadata?.snapshotId === same?.metadata?.snapshotId;
}

export const aguiFormat = sseFormat<AguiEvent>((event) => sseJson(event));

/** The content for a client before the events of a turn. */
export interface Prelude {
  readonly messages: readonly AguiMessage[] | undefined;
  readonly custom: Json | undefined;
}

export function opening(place: RunPlace, prelude: Prelude): readonly AguiEvent[] {
  const { threadId, runId, isCurrent } = place;
  const version = { protocolVersion: isCurrent ? protocolVersion : undefined };
  return [{ type: 'RUN_STARTED', threadId, runId, ...version }, ...snapshots(prelude)];
}

function snapshots({ messages, custom }: Prelude): readonly AguiEvent[] {
  return [
    ...(messages ? [{ type: 'MESSAGES_SNAPSHOT', messages }] : []),
    ...(custom === undefined ? [] : [{ type: 'STATE_SNAPSHOT', snapshot: custom }]),
  ];
}

/** The events of a run: what the client must know first, and what the turn says, up to its end. */
export async function* runEvents(
  agent: Agent,
  feed: AsyncIterable<FeedBatch>,
  place: RunPlace,
  { prelude, options }: { readonly prelude: Prelude; readonly options: CallOptions },
): AsyncGenerator<readonly AguiEvent[]> {
  yield opening(place, prelude);
  const encoder = new AguiEncoder(place);
  for await (const batch of feed) {
    const events: AguiEvent[] = [];
    for (const event of batch) {
      events.push(...(await encode(agent, encoder, event, options)));
    }
    if (events.length > 0) yield events;
  }
}

/** Encodes one event, with what the encoder cannot know. */
async function encode(
  agent: Agent,
  encoder: AguiEncoder,
  event: FeedEvent,
  options: CallOptions,
): Promise<readonly AguiEvent[]> {
  switch (event.type) {
    case 'chunk':
      encoder.chunk(event.chunk);
      return encoder.take();
    case 'reset':
      encoder.takeOver();
      return [...encoder.take(), ...(await storedThread(agent, encoder.turnId, options))];
    case 'output': {
      const { snapshotId = encoder.turnId } = event.output;
      const stored = encoder.isTakenOver ? await storedThread(agent, snapshotId, options) : [];
      encoder.finish(event.output, await interruptsIn(agent, event.output));
      return [...stored, ...encoder.take()];
    }
    case 'error':
      encoder.fail(event.error.message, event.error.status);
      return encoder.take();
  }
}

/** The interrupts that an output waits for, without the calls of the client's own tools. */
async function interruptsIn(
  agent: Agent,
  { message, snapshotId, finishReason }: Pick<Output, 'message' | 'snapshotId' | 'finishReason'>,
): Promise<readonly object[]> {
  if (finishReason !== 'interrupted' || snapshotId === undefined) return [];
  return await toAguiInterrupts(agent, snapshotId, interruptsOf(message));
}

// Text of the lost worker after its last checkpoint no longer counts: the client gets the stored state.
async function storedThread(
  agent: Agent,
  snapshotId: string,
  options: CallOptions,
): Promise<readonly AguiEvent[]> {
  const snapshot = await agent.getSnapshot({ snapshotId }, options);
  if (snapshot === undefined) return [];
  const state = snapshot.state as State | undefined;
  const { messages } = toHistory(state?.messages ?? [], snapshotId);
  const artifacts = (state?.artifacts ?? []).map(activityOf);
  const custom = state?.custom as Json | undefined;
  return snapshots({ messages: [...messages, ...artifacts], custom });
}
