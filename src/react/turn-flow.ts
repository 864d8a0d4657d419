import type { AgentTypes, OutputOf, RequestOptions, SnapshotOf } from '../api/types.ts';
import type { ApiInvokeOptions } from '../client/index.ts';
import type { ErrorBody } from '../core/error.ts';
import type { Message } from '../protocol/message.ts';
import type { Input } from '../protocol/turn.ts';
import { type FlowContext, showFailure } from './flow-context.ts';
import { addTurn, type SessionData, sessionDataOf } from './session-data.ts';

export interface OwnTurn<Types extends AgentTypes> {
  readonly input: Input;
  /** Where it starts, and its tools. */
  readonly init: ApiInvokeOptions<Types> & RequestOptions;
  readonly sent: readonly Message[];
  readonly stop: AbortSignal;
}

/** Runs a turn and shows it. If another flow has become the current one, the turn continues without being shown. */
export async function runOwnTurn<Types extends AgentTypes>(
  flowContext: FlowContext<Types>,
  flow: AbortSignal,
  { input, init, sent, stop }: OwnTurn<Types>,
): Promise<OutputOf<Types> | undefined> {
  const { agent, conversation, publisher } = flowContext;
  conversation.begin(sent);
  publisher.publish();
  try {
    const { stream, output } = agent.stream(input, {
      ...init,
      signal: stop,
      onReset: (_, reset) => !flow.aborted && conversation.takenOver(reset),
      artifacts: 'patches',
    });
    output.catch(() => {}); // the stream fails with it
    for await (const chunk of stream) if (!flow.aborted) show(flowContext, chunk);
    const result = await output;
    if (!flow.aborted) await finishTurn(flowContext, flow, result, sent);
    return result;
  } catch (error) {
    if (!flow.aborted) showFailure(flowContext, error);
    return undefined;
  }
}

/** Shows a run that was begun elsewhere, or before the page was loaded, from its first event to its end. */
export async function followOtherRun<Types extends AgentTypes>(
  flowContext: FlowContext<Types>,
  flow: AbortSignal,
  runId: string,
  sent: readonly Message[],
): Promise<void> {
  const { agent, conversation, publisher } = flowContext;
  conversation.begin(sent);
  conversation.set({ phase: 'running', running: runId });
  publisher.publish();
  try {
    for await (const event of agent.watch(runId, { signal: flow, artifacts: 'patches' })) {
      if (flow.aborted) return;
      if (event.type === 'chunk') show(flowContext, event.chunk);
      else if (event.type === 'end') endRun(flowContext, event.snapshot);
      else {
        conversation.takenOver(event);
        publisher.publishSoon();
      }
    }
  } catch (error) {
    if (!flow.aborted) showFailure(flowContext, error);
  }
}

function show<Types extends AgentTypes>(
  { conversation, publisher, timeline }: FlowContext<Types>,
  chunk: Parameters<typeof conversation.fold>[0],
): void {
  const { sessionId } = conversation.view;
  conversation.fold(chunk);
  if (!chunk.turnStart) {
    publisher.publishSoon();
    return;
  }
  publisher.publish();
  timeline.update(conversation.view.sessionId, sessionId === undefined ? 'all' : 'end');
}

async function finishTurn<Types extends AgentTypes>(
  flowContext: FlowContext<Types>,
  flow: AbortSignal,
  output: OutputOf<Types>,
  sent: readonly Message[],
): Promise<void> {
  const { agent, conversation, page } = flowContext;
  const { finishReason, snapshotId, usage, error } = output;
  if (finishReason === 'detached' && snapshotId !== undefined) {
    void followOtherRun(flowContext, flow, snapshotId, sent);
  } else if (finishReason === 'failed' || error) {
    conversation.fail(error as ErrorBody | undefined);
    conversation.set({ finishReason, usage });
    announceEnd(flowContext, conversation.sessionData);
  } else {
    const before = conversation.sessionData;
    const sessionData = await addTurn(agent, before, output, page).catch(() =>
      asSeen(flowContext, output),
    );
    if (flow.aborted) return;
    conversation.settle(sessionData);
    conversation.set({ ...ended, finishReason, usage, output: output.output });
    announceEnd(flowContext, before);
  }
}

function endRun<Types extends AgentTypes>(
  flowContext: FlowContext<Types>,
  snapshot: SnapshotOf<Types>,
): void {
  const { conversation } = flowContext;
  const before = conversation.sessionData;
  const { status, finishReason, usage, error } = snapshot;
  if (status === 'succeeded') {
    const { state } = snapshot;
    conversation.settle(state ? sessionDataOf(snapshot, before) : asSeen(flowContext, snapshot));
  } else if (status === 'aborted') {
    // The session does not continue from it, and the next model call does not see it.
    const { atHead } = conversation;
    conversation.settle({ ...before, sessionId: snapshot.sessionId }, { atHead });
  } else {
    conversation.fail(status === 'expired' ? expired : (error as ErrorBody | undefined));
  }
  const reason = status === 'aborted' ? 'aborted' : finishReason;
  conversation.set({ ...ended, finishReason: reason, usage });
  announceEnd(flowContext, before);
}

const ended = { phase: 'ready', running: undefined } as const;

/** The saved part as the chunks told it, for when it cannot be read. */
function asSeen<Types extends AgentTypes>(
  { conversation }: FlowContext<Types>,
  { sessionId, snapshotId }: Pick<OutputOf<Types>, 'sessionId' | 'snapshotId'>,
): SessionData<Types> {
  const { transcript: messages, earlier: from, custom, artifacts } = conversation.view;
  return { sessionId, snapshotId, messages, from, custom, artifacts };
}

function announceEnd<Types extends AgentTypes>(
  { conversation, publisher, timeline }: FlowContext<Types>,
  before: SessionData<Types>,
): void {
  publisher.publish();
  const { view } = conversation;
  const tip = view.timeline.findLast(({ orphaned, status }) => !orphaned && status === 'succeeded');
  // A turn that continued from the head only appends; any other turn starts a branch.
  timeline.update(view.sessionId, tip?.snapshotId === before.snapshotId ? 'end' : 'all');
}

const expired: ErrorBody = {
  status: 'UNAVAILABLE',
  message: 'The process that worked on this turn has stopped. Send it again.',
};
