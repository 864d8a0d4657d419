import type { AgentApi } from '../api/agent-api.ts';
import { toResume } from '../api/interrupts.ts';
import { type SnapshotRef, sessionIdOf, snapshotIdOf, toInput } from '../api/turn-values.ts';
import type { AgentTypes, OutputOf } from '../api/types.ts';
import type { ApiInvokeOptions } from '../client/index.ts';
import { type ErrorBody, toErrorBody } from '../core/error.ts';
import { randomBytes } from '../core/platform.ts';
import { systemClock } from '../core/time.ts';
import type { Input } from '../protocol/turn.ts';
import type { AgentActions, AgentStore, AgentStoreOptions } from './agent-store.ts';
import { Conversation } from './conversation.ts';
import { change, createPublisher, type FlowContext, showFailure } from './flow-context.ts';
import { allAnswers, answersTo, type GivenAnswers, withAnswers } from './interrupts.ts';
import {
  readSent,
  readSession,
  type SessionData,
  sessionDataOf,
  sessionDataOfSession,
  snapshotBefore,
} from './session-data.ts';
import { createTimelineActions, readSnapshot, type TimelineActions } from './timeline-actions.ts';
import { TimelineSync } from './timeline-sync.ts';
import { followOtherRun, runOwnTurn } from './turn-flow.ts';
import type { AgentView } from './view.ts';

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
  return new ConversationStore(options);
}

class ConversationStore<Types extends AgentTypes> implements AgentStore<Types> {
  readonly agent: AgentApi<Types>;
  readonly actions: AgentActions<Types>;
  readonly initialView: AgentView<Types>;
  readonly #flowContext: FlowContext<Types>;
  // Aborted when another flow replaces it.
  #flow = new AbortController();
  #loaded: Promise<void> = Promise.resolve();
  // Whether the shown state must be read again before it can be relied on.
  #stale: boolean;
  // Whether the current flow is a turn that was sent from here.
  #isOwnTurn = false;
  #stop: (() => Promise<unknown>) | undefined;
  #lastSent: { readonly input: Input; readonly options: SendOptions } | undefined;

  constructor(options: AgentStoreOptions<Types>) {
    const { agent, sessionId, initial, timeline = false } = options;
    const { clock = systemClock, throttle = 16, messages } = options;
    const page = messages === undefined ? {} : { messages: { last: messages } };
    this.agent = agent;
    this.#stale = initial ? initial.running !== undefined : sessionId !== undefined;
    const conversation = new Conversation<Types>(firstSettled(options), {
      phase: this.#stale && !initial ? 'loading' : 'ready',
      title: initial?.title,
      running: initial?.running,
    });
    const publisher = createPublisher({ clock, throttle, read: () => conversation.view });
    const timelineSync = new TimelineSync<Types>(agent, timeline, (kept) => {
      // The user may have opened another session meanwhile.
      if (conversation.view.sessionId !== kept.sessionId) return;
      const hasEarlierSnapshots = kept.earlier !== undefined;
      change(this.#flowContext, { timeline: kept.items, hasEarlierSnapshots });
    });
    this.#flowContext = { agent, conversation, publisher, timeline: timelineSync, page };
    this.initialView = publisher.get();
    const { load, ...actions } = this.#createActions();
    this.actions = { ...actions, load, ...createTimelineActions(this.#flowContext, load) };
  }

  readonly getView = (): AgentView<Types> => this.#flowContext.publisher.get();

  readonly subscribe = (listener: () => void): (() => void) =>
    this.#flowContext.publisher.subscribe(listener);

  readonly open = (): (() => void) => {
    const { conversation, timeline } = this.#flowContext;
    const { sessionId } = conversation.view;
    if (this.#stale && sessionId !== undefined) void this.#load(sessionId);
    else timeline.update(sessionId, 'all');
    return () => this.#close();
  };

  #createActions(): Omit<AgentActions<Types>, keyof TimelineActions<Types>> {
    return {
      send: (input, options = {}) => this.#send(toInput(input), options),
      retry: async () => {
        const last = this.#lastSent;
        return last && (await this.#send(last.input, last.options));
      },
      resend: (messageIndex, input) => this.#resend(messageIndex, toInput(input)),
      resume: (answers, options = {}) => this.#answer(answers, options),
      steer: (input) => this.#steer(toInput(input)),
      stop: () => this.#stopTurn(),
      detach: () => {
        this.#newFlow();
        change(this.#flowContext, { phase: 'ready' });
      },
      load: async (session) => {
        const sessionId = sessionIdOf(session);
        this.#newFlow();
        this.#flowContext.conversation.leave(sessionId);
        if (sessionId === undefined) change(this.#flowContext, { phase: 'ready' });
        else await this.#load(sessionId);
      },
      loadEarlier: () => this.#loadEarlier(),
      refresh: async () => {
        const { sessionId } = this.#flowContext.conversation.view;
        if (sessionId !== undefined) await this.#load(sessionId);
      },
    };
  }

  #close(): void {
    const { phase } = this.#flowContext.conversation.view;
    // Follow the store's own turn to its end, so that it is complete when the component mounts again.
    if (phase === 'ready' || this.#isOwnTurn) return;
    this.#newFlow();
    this.#stale = true;
  }

  #newFlow(): AbortSignal {
    this.#flow.abort();
    this.#flow = new AbortController();
    this.#isOwnTurn = false;
    this.#stop = undefined;
    return this.#flow.signal;
  }

  #load(sessionId: string): Promise<void> {
    const flow = this.#newFlow();
    change(this.#flowContext, { phase: 'loading', error: undefined });
    this.#loaded = this.#read(flow, sessionId).catch((error: unknown) => {
      if (!flow.aborted) showFailure(this.#flowContext, error);
    });
    return this.#loaded;
  }

  async #read(flow: AbortSignal, sessionId: string): Promise<void> {
    const { conversation, timeline, page } = this.#flowContext;
    const session = await readSession(this.agent, sessionId, { ...page, signal: flow });
    if (flow.aborted) return;
    this.#stale = false;
    // A session with an unknown id begins with the first turn.
    conversation.settle(
      session
        ? sessionDataOfSession(session, conversation.sessionData)
        : sessionDataOf({ sessionId }),
    );
    const { title, running } = session ?? {};
    change(this.#flowContext, {
      phase: running === undefined ? 'ready' : 'running',
      title,
      running,
    });
    timeline.update(session && sessionId, 'all');
    if (running !== undefined) void this.#follow(flow, running);
  }

  async #follow(flow: AbortSignal, runId: string): Promise<void> {
    this.#stop = () => this.agent.abort(runId);
    const { conversation, page } = this.#flowContext;
    const options = { ...page, signal: flow };
    const sent = await readSent(this.agent, runId, conversation.sessionData, options);
    if (!flow.aborted) await followOtherRun(this.#flowContext, flow, runId, sent);
  }

  #earlier: Promise<void> | undefined;

  #loadEarlier(): Promise<void> {
    this.#earlier ??= this.#readEarlier().finally(() => {
      this.#earlier = undefined;
    });
    return this.#earlier;
  }

  async #readEarlier(): Promise<void> {
    const { conversation, page, publisher } = this.#flowContext;
    const { snapshotId, from } = conversation.sessionData;
    const last = page.messages?.last;
    if (from === 0 || snapshotId === undefined || last === undefined) return;
    try {
      const options = { messages: { last, before: from } };
      const earlier = await this.agent.getSnapshot({ snapshotId }, options);
      const now = conversation.sessionData;
      const { messageRange: range, state } = earlier ?? {};
      // The user may have opened another session meanwhile, or a turn may have ended.
      if (range === undefined || now.snapshotId !== snapshotId || now.from !== from) return;
      conversation.extend(state?.messages ?? [], range.from);
      publisher.publish();
    } catch (error) {
      change(this.#flowContext, { error: toErrorBody(error) });
    }
  }

  async #send(input: Input, options: SendOptions): Promise<OutputOf<Types> | undefined> {
    const { conversation } = this.#flowContext;
    if (conversation.view.phase === 'loading') await this.#loaded;
    if (conversation.view.phase !== 'ready') {
      change(this.#flowContext, { error: busy });
      return undefined;
    }
    const flow = this.#newFlow();
    this.#isOwnTurn = true;
    this.#lastSent = { input, options };
    const stop = new AbortController();
    this.#stop = async () => stop.abort();
    // Before anything is awaited, so that a double click does not send twice.
    change(this.#flowContext, { phase: 'sending', error: undefined });
    if (!(await this.#standAt(flow, options.from))) return undefined;
    const output = await runOwnTurn(this.#flowContext, flow, {
      input: options.detach ? { ...input, detach: true } : input,
      init: {
        ...this.#init(),
        ...(options.ifHead !== undefined && { ifHead: options.ifHead }),
        ...(options.tools !== undefined && { tools: options.tools }),
      },
      sent: input.message ? [input.message] : [],
      stop: stop.signal,
    });
    if (flow.aborted) return output;
    this.#isOwnTurn = false;
    if (output?.finishReason === 'detached' && output.snapshotId !== undefined) {
      const runId = output.snapshotId;
      this.#stop = () => this.agent.abort(runId);
    }
    return output;
  }

  // Moves to the snapshot that a turn continues from.
  async #standAt(flow: AbortSignal, from: SnapshotRef | null | undefined): Promise<boolean> {
    const { conversation } = this.#flowContext;
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
      const snapshot = await readSnapshot(this.agent, snapshotId, this.#flowContext.page);
      if (flow.aborted) return false;
      conversation.settle(sessionDataOf(snapshot, conversation.sessionData), {
        atHead: false,
      });
      return true;
    } catch (error) {
      if (!flow.aborted) showFailure(this.#flowContext, error);
      return false;
    }
  }

  #init(): ApiInvokeOptions<Types> {
    const { sessionData, atHead } = this.#flowContext.conversation;
    const { state, sessionId, snapshotId } = sessionData;
    if (state) return { state };
    if (sessionId === undefined) return {};
    // At the head, name only the session: other clients may have continued it, and their turns must stay on the path.
    return { sessionId, ...(!atHead && { from: snapshotId ?? null }) };
  }

  async #resend(messageIndex: number, input: Input): Promise<OutputOf<Types> | undefined> {
    const { conversation } = this.#flowContext;
    let from: string | undefined;
    for (;;) {
      const { transcript, earlier } = conversation.view;
      from = snapshotBefore(transcript, messageIndex - earlier);
      // The turn before may be among the messages that were not loaded.
      if (from !== undefined || earlier === 0) break;
      await this.#loadEarlier();
      if (conversation.view.earlier === earlier) return undefined;
    }
    return await this.#send(input, { from: from ?? null });
  }

  async #answer(
    answers: GivenAnswers,
    { tools }: Pick<SendOptions, 'tools'>,
  ): Promise<OutputOf<Types> | undefined> {
    const { conversation, publisher } = this.#flowContext;
    const { interrupts } = conversation.view;
    const noted = withAnswers(interrupts, answersTo(interrupts, answers));
    // A second click: they have been answered.
    if (noted === interrupts) return undefined;
    conversation.setInterrupts(noted);
    publisher.publish();
    const all = allAnswers(noted);
    return (
      all && (await this.#send({ resume: toResume(all) }, tools === undefined ? {} : { tools }))
    );
  }

  async #steer({ message, requestId = newSteeringId() }: Input): Promise<boolean> {
    const { conversation } = this.#flowContext;
    const { running } = conversation.view;
    if (running === undefined || message === undefined) {
      change(this.#flowContext, { error: notRunning });
      return false;
    }
    const steered = { id: requestId, runId: running };
    conversation.steer({ ...message, metadata: { ...message.metadata, steered } });
    change(this.#flowContext, { error: undefined });
    try {
      await this.agent.steer(running, { message }, { requestId });
      return true;
    } catch (error) {
      conversation.unsteer(requestId);
      change(this.#flowContext, { error: toErrorBody(error) });
      return false;
    }
  }

  async #stopTurn(): Promise<void> {
    const stop = this.#stop;
    if (!stop || this.#flowContext.conversation.view.phase === 'ready') return;
    change(this.#flowContext, { phase: 'stopping' });
    await stop().catch((error: unknown) =>
      change(this.#flowContext, { phase: 'running', error: toErrorBody(error) }),
    );
  }
}

function firstSettled<Types extends AgentTypes>({
  initial,
  state,
  sessionId,
}: AgentStoreOptions<Types>): SessionData<Types> {
  if (initial) return sessionDataOfSession(initial);
  if (state) return { ...sessionDataOf({ sessionId: state.sessionId, state }), state };
  return sessionDataOf({ sessionId });
}

const notRunning: ErrorBody = {
  status: 'FAILED_PRECONDITION',
  message: 'No turn is running that a message can be added to. Send it as the next turn.',
};

const newSteeringId = (): string => randomBytes(new Uint8Array(16)).join('.');

const busy: ErrorBody = {
  status: 'FAILED_PRECONDITION',
  message: 'A turn is running: stop it, or wait for its end.',
};
