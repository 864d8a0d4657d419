import type { Agent, CallOptions } from '../../agent/spec/agent.ts';
import { interruptsAtEnd } from '../../api/interrupts.ts';
import type { Message } from '../../protocol/message.ts';
import type { State } from '../../protocol/state.ts';
import { activityOf, shownCustom, toHistory } from './history.ts';
import { toAguiInterrupts } from './interrupts.ts';
import type { Prelude } from './run-stream.ts';

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
