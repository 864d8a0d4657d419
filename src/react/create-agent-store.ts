import { toResume } from '../api/interrupts.ts';
import { sessionIdOf, snapshotIdOf, toInput } from '../api/turn-values.ts';
import type { AgentTypes, OutputOf } from '../api/types.ts';
import type { ApiInvokeOptions } from '../client/index.ts';
import { type ErrorBody, toErrorBody } from '../core/error.ts';
import { defined } from '../core/json/json.ts';
import { randomBytes } from '../core/platform.ts';
import { systemClock } from '../core/time.ts';
import type { Input } from '../protocol/turn.ts';
import type { AgentActions, AgentStore, AgentStoreOptions } from './agent-store.ts';
import { Conversation } from './conversation.ts';
import { attempt, change, createPublisher, type FlowContext, showFailure } from './flow-context.ts';
import { allAnswers, answersTo, type GivenAnswers, withAnswers } from './interrupts.ts';
import {
  readSent,
  readSession,
  type SessionData,
  sessionDataOf,
  sessionDataOfSession,
  snapshotBefore,
} from './session-data.ts';
import { createTimelineActions, readSnapshot } from './timeline-actions.ts';
import { TimelineSync } from './timeline-sync.ts';
import { followOtherRun, runOwnTurn } from './turn-flow.ts';

type SendOptions = NonNullable<Parameters<AgentActions['send']>[1]>;

/**
 * A store of one conversation at a time, without React. It sends nothing before it is opened or used.
 *
 * @example
 * const store = createAgentStore({ agent: client({ url, agent: 'chat' }) });
 * store.subscribe(() => render(store.getView()));
 */
export function createAgentStore<Types extends AgentTypes>(
  options: AgentStoreOptions<Types>,
): AgentStore<Types> {
  const { agent, sessionId, initial, clock = systemClock, throttle = 16, messages } = options;
  const page = messages === undefined ? {} : { messages: { last: messages } };
  // Aborted when another flow replaces it.
  let current = new AbortController();
  let loaded: Promise<void> = Promise.resolve();
  // Whether the shown state must be read again before it can be relied on.
  let stale = initial ? initial.running !== undefined : sessionId !== undefined;
  // Whether the current flow is a turn that was sent from here.
  let isOwnTurn = false;
  let stopRun: (() => Promise<unknown>) | undefined;
  let lastSent: { readonly input: Input; readonly options: SendOptions } | undefined;
  let readingEarlier: Promise<void> | undefined;
  const conversation = new Conversation<Types>(firstSettled(options), {
    phase: stale && !initial ? 'loading' : 'ready',
    title: initial?.title,
    running: initial?.running,
  });
  const publisher = createPublisher({ clock, throttle, read: () => conversation.view });
  const timeline = new TimelineSync<Types>(agent, options.timeline ?? false, (kept) => {
    // The user may have opened another session meanwhile.
    if (conversation.view.sessionId !== kept.sessionId) return;
    const hasEarlierSnapshots = kept.earlier !== undefined;
    change(flowContext, { timeline: kept.items, hasEarlierSnapshots });
  });
  const flowContext: FlowContext<Types> = { agent, conversation, publisher, timeline, page };

  function close(): void {
    const { phase } = conversation.view;
    // Follow the store's own turn to its end, so that it is complete when the component mounts again.
    if (phase === 'ready' || isOwnTurn) return;
    newFlow();
    stale = true;
  }

  function newFlow(): AbortSignal {
    current.abort();
    current = new AbortController();
    isOwnTurn = false;
    stopRun = undefined;
    return current.signal;
  }

  function loadSession(sessionId: string): Promise<void> {
    const flow = newFlow();
    change(flowContext, { phase: 'loading', error: undefined });
    loaded = read(flow, sessionId).catch((error: unknown) => {
      if (!flow.aborted) showFailure(flowContext, error);
    });
    return loaded;
  }

  async function read(flow: AbortSignal, sessionId: string): Promise<void> {
    const session = await readSession(agent, sessionId, { ...page, signal: flow });
    if (flow.aborted) return;
    stale = false;
    // A session with an unknown id begins with the first turn.
    conversation.settle(
      session
        ? sessionDataOfSession(session, conversation.sessionData)
        : sessionDataOf({ sessionId }),
    );
    const { title, running } = session ?? {};
    change(flowContext, { phase: running === undefined ? 'ready' : 'running', title, running });
    timeline.update(session && sessionId, 'all');
    if (running !== undefined) void follow(flow, running);
  }

  async function follow(flow: AbortSignal, runId: string): Promise<void> {
    stopRun = () => agent.abort(runId);
    const options = { ...page, signal: flow };
    const sent = await readSent(agent, runId, conversation.sessionData, options);
    if (!flow.aborted) await followOtherRun(flowContext, flow, runId, sent);
  }

  function loadEarlier(): Promise<void> {
    readingEarlier ??= readEarlier().finally(() => {
      readingEarlier = undefined;
    });
    return readingEarlier;
  }

  async function readEarlier(): Promise<void> {
    const { snapshotId, from } = conversation.sessionData;
    const last = page.messages?.last;
    if (from === 0 || snapshotId === undefined || last === undefined) return;
    try {
      const options = { messages: { last, before: from } };
      const earlier = await agent.getSnapshot({ snapshotId }, options);
      const now = conversation.sessionData;
      const { messageRange: range, state } = earlier ?? {};
      // The user may have opened another session meanwhile, or a turn may have ended.
      if (range === undefined || now.snapshotId !== snapshotId || now.from !== from) return;
      conversation.extend(state?.messages ?? [], range.from);
      publisher.publish();
    } catch (error) {
      change(flowContext, { error: toErrorBody(error) });
    }
  }

  async function send(input: Input, options: SendOptions): Promise<OutputOf<Types> | undefined> {
    if (conversation.view.phase === 'loading') await loaded;
    if (conversation.view.phase !== 'ready') {
      change(flowContext, { error: busy });
      return undefined;
    }
    const flow = newFlow();
    isOwnTurn = true;
    lastSent = { input, options };
    const { from, ifHead, tools, detach } = options;
    const stop = new AbortController();
    stopRun = async () => stop.abort();
    // Before anything is awaited, so that a double click does not send twice.
    change(flowContext, { phase: 'sending', error: undefined });
    if (!(await standAt(flow, from))) return undefined;
    const output = await runOwnTurn(flowContext, flow, {
      input: detach ? { ...input, detach } : input,
      init: { ...init(), ...defined({ ifHead, tools }) },
      sent: input.message ? [input.message] : [],
      stop: stop.signal,
    });
    if (flow.aborted) return output;
    isOwnTurn = false;
    if (output?.finishReason === 'detached' && output.snapshotId !== undefined) {
      const runId = output.snapshotId;
      stopRun = () => agent.abort(runId);
    }
    return output;
  }

  // Moves to the snapshot that a turn continues from.
  async function standAt(flow: AbortSignal, from: SendOptions['from']): Promise<boolean> {
    if (from === undefined) return true;
    if (from === null) {
      const { state, sessionId } = conversation.sessionData;
      // Without a store there is no session to start again.
      conversation.settle(sessionDataOf({ sessionId: state ? undefined : sessionId }), {
        atHead: false,
      });
      return true;
    }
    try {
      const snapshotId = snapshotIdOf(from);
      if (snapshotId === conversation.sessionData.snapshotId) return true;
      const snapshot = await readSnapshot(agent, snapshotId, page);
      if (flow.aborted) return false;
      conversation.settle(sessionDataOf(snapshot, conversation.sessionData), { atHead: false });
      return true;
    } catch (error) {
      if (!flow.aborted) showFailure(flowContext, error);
      return false;
    }
  }

  function init(): ApiInvokeOptions<Types> {
    const { sessionData, atHead } = conversation;
    const { state, sessionId, snapshotId } = sessionData;
    if (state) return { state };
    if (sessionId === undefined) return {};
    // At the head, name only the session: other clients may have continued it, and their turns must stay on the path.
    return { sessionId, ...(!atHead && { from: snapshotId ?? null }) };
  }

  async function resend(messageIndex: number, input: Input): Promise<OutputOf<Types> | undefined> {
    let from: string | undefined;
    for (;;) {
      const { transcript, earlier } = conversation.view;
      from = snapshotBefore(transcript, messageIndex - earlier);
      // The turn before may be among the messages that were not loaded.
      if (from !== undefined || earlier === 0) break;
      await loadEarlier();
      if (conversation.view.earlier === earlier) return undefined;
    }
    return await send(input, { from: from ?? null });
  }

  async function answer(
    answers: GivenAnswers,
    { tools }: Pick<SendOptions, 'tools'>,
  ): Promise<OutputOf<Types> | undefined> {
    const { interrupts } = conversation.view;
    const noted = withAnswers(interrupts, answersTo(interrupts, answers));
    // A second click: they have been answered.
    if (noted === interrupts) return undefined;
    conversation.setInterrupts(noted);
    publisher.publish();
    const all = allAnswers(noted);
    return all && (await send({ resume: toResume(all) }, defined({ tools })));
  }

  async function steer({ message, requestId = newSteeringId() }: Input): Promise<boolean> {
    const { running } = conversation.view;
    if (running === undefined || message === undefined) {
      change(flowContext, { error: notRunning });
      return false;
    }
    const steered = { id: requestId, runId: running };
    conversation.steer({ ...message, metadata: { ...message.metadata, steered } });
    return await attempt(flowContext, async () => {
      await agent.steer(running, { message }, { requestId }).catch((error: unknown) => {
        conversation.unsteer(requestId);
        throw error;
      });
    });
  }

  async function stopTurn(): Promise<void> {
    const stop = stopRun;
    if (!stop || conversation.view.phase === 'ready') return;
    change(flowContext, { phase: 'stopping' });
    await stop().catch((error: unknown) =>
      change(flowContext, { phase: 'running', error: toErrorBody(error) }),
    );
  }

  const load: AgentActions<Types>['load'] = async (session) => {
    const id = sessionIdOf(session);
    newFlow();
    conversation.leave(id);
    if (id === undefined) change(flowContext, { phase: 'ready' });
    else await loadSession(id);
  };
  return {
    agent,
    actions: {
      send: (input, sendOptions = {}) => send(toInput(input), sendOptions),
      retry: async () => lastSent && (await send(lastSent.input, lastSent.options)),
      resend: (messageIndex, input) => resend(messageIndex, toInput(input)),
      resume: (answers, sendOptions = {}) => answer(answers, sendOptions),
      steer: (input) => steer(toInput(input)),
      stop: stopTurn,
      detach() {
        newFlow();
        change(flowContext, { phase: 'ready' });
      },
      load,
      loadEarlier,
      async refresh() {
        const { sessionId: id } = conversation.view;
        if (id !== undefined) await loadSession(id);
      },
      ...createTimelineActions(flowContext, load),
    },
    initialView: publisher.get(),
    getView: publisher.get,
    subscribe: publisher.subscribe,
    open() {
      const { sessionId: id } = conversation.view;
      if (stale && id !== undefined) void loadSession(id);
      else timeline.update(id, 'all');
      return close;
    },
  };
}

function firstSettled<Types extends AgentTypes>(
  options: AgentStoreOptions<Types>,
): SessionData<Types> {
  const { initial, state, sessionId } = options;
  if (initial) return sessionDataOfSession(initial);
  if (state) return { ...sessionDataOf({ sessionId: state.sessionId, state }), state };
  return sessionDataOf({ sessionId });
}

const newSteeringId = (): string => randomBytes(new Uint8Array(16)).join('.');

const refused = (message: string): ErrorBody => ({ status: 'FAILED_PRECONDITION', message });
const busy = refused('A turn is running: stop it, or wait for its end.');
const notRunning = refused(
  'No turn is running that a message can be added to. Send it as the next turn.',
);
