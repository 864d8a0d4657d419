import type { Agent, CallOptions } from '../../agent/contract/agent.ts';
import { type Interrupt, interruptsAtEnd, toResume } from '../../api/interrupts.ts';
import { failedPrecondition, invalid, type WaymarkError } from '../../core/error.ts';
import { sha256 } from '../../core/json/hash.ts';
import { defined, isJsonObject, type Json } from '../../core/json/json.ts';
import { autoPrefix } from '../../protocol/ids.ts';
import type { State } from '../../protocol/state.ts';
import type { CallerToolInfo, Init, Input } from '../../protocol/turn.ts';
import { toolCallId } from '../http/turns-of.ts';
import { type Exchange, type History, shownCustom, toHistory } from './history.ts';
import { findAsked, isClientTool, toAnswers, toolResults, toToolAnswer } from './interrupts.ts';
import { type AguiMessage, type PostedMessage, type RunRequest, toUserMessage } from './shapes.ts';

export interface AguiTurn {
  readonly init: Init;
  readonly input: Input;
  /** The custom state that the turn starts from. */
  readonly custom: Json | undefined;
  /** The thread as the turn starts, where the client shows another one. */
  readonly messages: readonly AguiMessage[] | undefined;
  /** The calls whose results the client has posted, and shows already. */
  readonly answered: ReadonlySet<string>;
}

/** Where a turn starts, and which of the posted messages are new to the thread. */
interface Place {
  readonly init: Init;
  readonly state: State | undefined;
  readonly history: History;
  readonly posted: readonly PostedMessage[];
}

/**
 * The turn that a request asks for: a message at the head of the thread, a message in the place of a later one (which branches), an
 * answer once more, results of the client's tools, or answers to interrupts. The server's own history counts: of the posted
 * messages only those behind the last known one are read.
 */
export async function toTurn(
  agent: Agent,
  request: RunRequest,
  options: CallOptions,
): Promise<AguiTurn> {
  const place = await placeOf(agent, request, options);
  const { input, answered } = await inputOf(agent, request, place, options);
  const tools = (request.tools ?? []).map(toCallerTool);
  return {
    init: place.init,
    input: {
      ...input,
      ...defined({ tools: tools.length > 0 ? tools : undefined }),
      requestId: requestIdOf(request),
    },
    custom: shownCustom(agent, place.state),
    messages: isInSync(request.messages, place) ? undefined : shownMessages(place),
    answered,
  };
}

/**
 * A request that is posted again joins its first run. Clients answer interrupts under the id of the run that asked, so the id
 * alone does not name a request. Agents that cannot store request ids ignore this one.
 */
function requestIdOf({ threadId, runId, messages, resume }: RunRequest): string {
  const asked = [threadId, runId, messages.at(-1)?.id ?? null, resume ?? null];
  return `${autoPrefix}agui-${sha256(JSON.stringify(asked))}`;
}

async function placeOf(agent: Agent, request: RunRequest, options: CallOptions): Promise<Place> {
  const { threadId: sessionId, messages, resume, parentRunId } = request;
  const session = await agent.getSession(sessionId, options);
  const head = session?.state as State | undefined;
  const history = toHistory(head?.messages ?? []);
  const known = lastKnown(messages, history);
  const posted = messages.slice(known.at + 1);
  const at = async (snapshotId: string | null | undefined): Promise<Place> => {
    if (snapshotId === null) {
      return { init: { sessionId, from: null }, state: undefined, history: toHistory([]), posted };
    }
    if (snapshotId === undefined || snapshotId === session?.headId) {
      return { init: { sessionId }, state: head, history, posted };
    }
    const snapshot = await agent.getSnapshot({ snapshotId, sessionId }, options);
    const state = snapshot?.state as State | undefined;
    const init = { sessionId, snapshotId };
    return { init, state, history: toHistory(state?.messages ?? []), posted };
  };
  if (resume && resume.length > 0) {
    return await at((await findAsked(agent, sessionId, resume, options)).snapshotId);
  }
  // The end of the run that the request names; absent if the thread does not show it.
  const { exchanges } = history;
  const named = parentRunId && exchanges.findLast(({ runId }) => runId === parentRunId);
  const parent = named ? named.snapshotId : undefined;
  if (parent !== undefined) return await at(parent);
  // A client that asks for another answer to a message posts it as the last one.
  if (posted.length === 0 && messages[known.at]?.role === 'user') {
    const around = [exchanges[known.exchange - 1], exchanges[known.exchange]];
    const from = await beforeRepeated(agent, request, around, options);
    return { ...(await at(from)), posted: messages.slice(known.at, known.at + 1) };
  }
  const isHead = known.exchange < 0 || known.exchange === exchanges.length - 1;
  return await at(isHead ? undefined : exchanges[known.exchange]?.snapshotId);
}

interface Known {
  /** The place of the last posted message that the thread has; -1 if there is none. */
  readonly at: number;
  readonly exchange: number;
}

function lastKnown(posted: readonly PostedMessage[], { exchanges }: History): Known {
  const places = new Map(
    exchanges.flatMap(({ ids }, exchange) => [...ids].map((id) => [id, exchange] as const)),
  );
  const at = posted.findLastIndex(({ id }) => places.has(id));
  return { at, exchange: places.get(posted[at]?.id ?? '') ?? -1 };
}

/** The snapshot from which a message is answered once more; `null` for the first message, `undefined` for the head. */
async function beforeRepeated(
  agent: Agent,
  { runId, threadId: sessionId }: RunRequest,
  [before, asked]: readonly (Exchange | undefined)[],
  options: CallOptions,
): Promise<string | null | undefined> {
  // The same request, sent again: its request id leads to its first run.
  if (asked?.runId === runId) return undefined;
  if (before?.snapshotId !== undefined) return before.snapshotId;
  // Messages of the agent's definition can come before the first turn.
  const snapshotId = asked?.snapshotId;
  const turn = snapshotId && (await agent.getSnapshot({ snapshotId, sessionId }, options));
  if (turn && turn.turnIndex === 0) return null;
  throw failedPrecondition(
    'The turn before this message has no snapshot, so the message cannot be sent again.',
  );
}

async function inputOf(
  agent: Agent,
  request: RunRequest,
  { posted, state, init }: Place,
  options: CallOptions,
): Promise<{ readonly input: Input; readonly answered: ReadonlySet<string> }> {
  const { messages, resume: entries, threadId } = request;
  const users = posted.filter(({ role }) => role === 'user');
  const said = users.length > 0 ? { message: toUserMessage(users, request) } : {};
  const results = toolResults(messages);
  const idOf = (call: Interrupt): string => toolCallId(call.request.toolRequest);
  const hasResult = (call: Interrupt): boolean => results.has(idOf(call));
  const waiting = interruptsAtEnd(state?.messages ?? []);
  const clientCalls = waiting.filter(isClientTool);
  const answered = new Set(clientCalls.filter(hasResult).map(idOf));
  const toolAnswers = (isAll: boolean) =>
    clientCalls
      .filter((call) => isAll || hasResult(call))
      .map((call) => toToolAnswer(call, results.get(idOf(call))));

  if (entries && entries.length > 0) {
    const asked = await findAsked(agent, threadId, entries, options);
    const answers = [...(await toAnswers(agent, asked, entries)), ...toolAnswers(false)];
    return { input: { ...said, resume: toResume(answers) }, answered };
  }
  if (answered.size > 0 && init.snapshotId === undefined) {
    // With a message, what has no result is declined, as by any message.
    const declined = users.length === 0 ? [] : waiting.filter((call) => !isClientTool(call));
    const answers = [
      ...toolAnswers(users.length > 0),
      ...declined.map((interrupt) => interrupt.decline()),
    ];
    return { input: { ...said, resume: toResume(answers) }, answered };
  }
  if (users.length === 0) throw nothingNew(waiting.length > 0);
  return { input: said, answered };
}

function nothingNew(isWaiting: boolean): WaymarkError {
  return invalid(
    isWaiting
      ? 'The thread waits for answers. Send them as `resume`, the results of your tools as tool messages, or a message from the user.'
      : 'There is nothing new to answer: the last message must be from the user, and new in the thread.',
  );
}

function toCallerTool(tool: NonNullable<RunRequest['tools']>[number]): CallerToolInfo {
  const { name, description, parameters } = tool;
  const schema = parameters as Json | undefined;
  const inputSchema = isJsonObject(schema) ? schema : { type: 'object' };
  return { name, ...defined({ description: description || undefined }), inputSchema };
}

/** Whether a client shows the messages that the turn starts from; tool messages may have ids that the client made. */
function isInSync(messages: readonly PostedMessage[], { history, posted }: Place): boolean {
  const compared = ({ role }: { readonly role: string }): boolean =>
    role === 'user' || role === 'assistant';
  const fresh = new Set(posted.map(({ id }) => id));
  const shown = messages.filter((each) => compared(each) && !fresh.has(each.id));
  const known = new Set(history.messages.map(({ id }) => id));
  const mine = history.messages.filter(compared).map(({ id }) => id);
  // Messages of sub-agents are not part of the thread.
  const theirs = shown.filter(({ id, subagentRunId }) => known.has(id) || !subagentRunId);
  return mine.length === theirs.length && mine.every((id, at) => id === theirs[at]?.id);
}

function shownMessages({ history, posted }: Place): readonly AguiMessage[] {
  const users = posted.filter(({ role }) => role === 'user');
  const added = users.map(({ id, content }) => ({ id, role: 'user', content }));
  return [...history.messages, ...added];
}
