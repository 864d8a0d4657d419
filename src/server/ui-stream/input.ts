import type { Agent, CallOptions } from '../../agent/contract/agent.ts';
import { type InterruptAnswer, toResume } from '../../api/interrupts.ts';
import { failedPrecondition, invalid, WaymarkError } from '../../core/error.ts';
import { defined, toJson } from '../../core/json/json.ts';
import type { Part, ToolRequestPart } from '../../protocol/message.ts';
import { pendingInterrupts } from '../../protocol/messages.ts';
import type { State } from '../../protocol/state.ts';
import type { Init, Input, Resume } from '../../protocol/turn.ts';
import { short } from '../http/answer.ts';
import { toolCallId } from '../http/turns-of.ts';
import { toUiMessages } from './messages.ts';
import { snapshotAfter, type UiMessage, type UiPart, type UiRequest } from './shapes.ts';

export interface UiTurn {
  readonly init: Init;
  readonly input: Input;
}

/**
 * The turn that a request of `useChat` asks for: a message at the head, a message in the place of an earlier one, an answer once
 * more, or answers to interrupts. The server's own history counts; of the posted one only the last message is read.
 */
export async function toTurn(
  agent: Agent,
  request: UiRequest,
  options: CallOptions,
): Promise<UiTurn> {
  const { id, messages, trigger, messageId } = request;
  const last = messages.at(-1);
  if (trigger === 'regenerate-message') {
    const asked = messages.findLast(({ role }) => role === 'user');
    return { init: await beforeAnswer(agent, request, options), input: inputOf(asked) };
  }
  if (last?.role === 'assistant') {
    const resume = await resumeOf(agent, id, last, options);
    return { init: { sessionId: id }, input: { resume } };
  }
  const init = messageId === undefined ? { sessionId: id } : afterAnswer(request);
  return { init, input: inputOf(last) };
}

function inputOf(message: UiMessage | undefined): Input {
  if (message?.role !== 'user') {
    throw invalid('The last message must be from the user.');
  }
  return { message: { role: 'user', content: message.parts.flatMap(toPart) } };
}

function toPart({ type, text, url, mediaType }: UiPart): Part[] {
  if (type === 'text' && text !== undefined) return [{ text }];
  if (type === 'file' && url !== undefined) {
    return [{ media: { url, ...defined({ contentType: mediaType }) } }];
  }
  return [];
}

// An answer has the id of its first snapshot; it is given again from where that turn began.
async function beforeAnswer(
  agent: Agent,
  { id: sessionId, messageId }: UiRequest,
  options: CallOptions,
): Promise<Init> {
  const snapshotId = messageId ?? (await lastAnswer(agent, sessionId, options));
  const lookup = snapshotId === undefined ? { sessionId } : { snapshotId };
  const snapshot = await agent.getSnapshot(lookup, options);
  if (!snapshot || snapshot.sessionId !== sessionId) {
    throw new WaymarkError('NOT_FOUND', `There is no answer ${short(messageId ?? '')} to repeat.`);
  }
  const { parentId, turnIndex } = snapshot;
  return fromParent(parentId ?? (turnIndex === 0 ? null : undefined), sessionId);
}

async function lastAnswer(
  agent: Agent,
  sessionId: string,
  options: CallOptions,
): Promise<string | undefined> {
  const session = await agent.getSession(sessionId, options);
  const messages = toUiMessages((session?.state as State | undefined)?.messages ?? []);
  const answer = messages.findLast(({ role }) => role === 'assistant');
  return answer?.metadata && answer.id;
}

// An edited message replaces one that follows an answer, or the first one.
function afterAnswer({ id: sessionId, messages }: UiRequest): Init {
  const answer = messages.findLast(({ role }) => role === 'assistant');
  return fromParent(answer === undefined ? null : snapshotAfter(answer), sessionId);
}

function fromParent(snapshotId: string | null | undefined, sessionId: string): Init {
  if (snapshotId === null) return { sessionId, from: null };
  if (snapshotId !== undefined) return { snapshotId, sessionId };
  throw failedPrecondition(
    'The turn before this one has no snapshot, so this turn cannot be replaced.',
  );
}

async function resumeOf(
  agent: Agent,
  sessionId: string,
  message: UiMessage,
  options: CallOptions,
): Promise<Resume> {
  const { parts } = message;
  const session = await agent.getSession(sessionId, options);
  const resume = answersTo(session?.state as State | undefined, parts);
  const snapshotId = snapshotAfter(message);
  if (resume.respond || resume.restart || snapshotId === undefined) return resume;
  // A request that is sent again may find its interrupts answered: by its first run, which its request id leads to. The
  // message names the snapshot that it answers.
  const snapshot = await agent.getSnapshot({ snapshotId }, options);
  return snapshot?.sessionId === sessionId
    ? answersTo(snapshot.state as State | undefined, parts)
    : resume;
}

/** The answers of a UI message to the interrupts that a conversation ends with. */
function answersTo(state: State | undefined, parts: readonly UiPart[]): Resume {
  const answers = pendingInterrupts(state?.messages ?? []).flatMap((request) => {
    const part = parts.findLast(({ toolCallId: id }) => id === toolCallId(request.toolRequest));
    return (part && answerOf(request, part)) ?? [];
  });
  return toResume(answers);
}

function answerOf({ toolRequest }: ToolRequestPart, part: UiPart): InterruptAnswer | undefined {
  const { name, ref } = toolRequest;
  const named = { name, ...defined({ ref }) };
  const respond = (output: unknown): InterruptAnswer => ({
    toolResponse: { ...named, output: toJson(output ?? null, 'The output of a tool') },
  });
  switch (part.state) {
    case 'output-available':
      return respond(part.output);
    case 'output-error':
      return respond(part.errorText ?? 'The tool failed.');
    case 'approval-responded': {
      const { approved = false, reason } = part.approval ?? {};
      // Not an answer in place of the tool: it would have to fit the tool's output schema, and would look like a result.
      if (!approved) return { toolResponse: named, metadata: { declined: reason ?? true } };
      return { toolRequest, metadata: { resumed: defined({ approved, reason }) } };
    }
    default:
      return undefined;
  }
}
