import type { Message, Part, ToolRequestPart, ToolResponsePart } from '../../protocol/message.ts';
import { isInterrupted } from '../../protocol/messages.ts';
import { toolCallId, turnsOf } from '../http/turns-of.ts';
import { isDeclined } from './shapes.ts';

/** A message as `useChat` holds it. */
export interface UiHistoryMessage {
  readonly id: string;
  readonly role: 'user' | 'assistant';
  readonly parts: UiHistoryPart[];
  /** For an answer: the snapshot after it. */
  readonly metadata?: { readonly snapshotId: string } | undefined;
}

type UiHistoryPart = { type: string; [field: string]: unknown };

/**
 * A session's messages for a page that is loaded again. All that a turn answered is one message, under the id of its
 * snapshot, as it was when it streamed. A turn that begins with results answers interrupts: it continues the message before.
 */
export function toUiMessages(messages: readonly Message[]): readonly UiHistoryMessage[] {
  const result: UiHistoryMessage[] = [];
  const begins = (message: Message, turn: readonly Message[]): boolean =>
    message.role === 'user' && turn.some(({ role }) => role !== 'user');
  for (const { messages: turn, snapshotId } of turnsOf(messages, begins)) {
    const before = result.at(-1);
    const continued = turn[0]?.role === 'tool' && before?.role === 'assistant' ? before : undefined;
    if (continued) result.pop();
    const id = continued?.id ?? snapshotId ?? `turn-${result.length}`;
    const asked = turn.filter(({ role }) => role === 'user');
    const answered = turn.filter(({ role }) => role === 'model' || role === 'tool');
    asked.forEach(({ content }, at) => {
      result.push({ id: `${id}-user-${at}`, role: 'user', parts: content.flatMap(toTextPart) });
    });
    if (answered.length > 0) {
      const metadata = snapshotId === undefined ? continued?.metadata : { snapshotId };
      const parts = [...(continued?.parts ?? [])];
      addAnswer(parts, answered);
      result.push({ id, role: 'assistant', parts, metadata });
    }
  }
  return result;
}

function addAnswer(parts: UiHistoryPart[], messages: readonly Message[]): void {
  for (const { role, content } of messages) {
    if (role === 'model') parts.push({ type: 'step-start' });
    for (const part of content) {
      if ('toolResponse' in part) answerTool(parts, part);
      else if ('toolRequest' in part) askTool(parts, part);
      else parts.push(...toTextPart(part));
    }
  }
}

function askTool(parts: UiHistoryPart[], { toolRequest, metadata }: ToolRequestPart): void {
  const id = toolCallId(toolRequest);
  const isWaiting = isInterrupted({ metadata });
  parts.push({
    type: `tool-${toolRequest.name}`,
    toolCallId: id,
    state: isWaiting ? 'approval-requested' : 'input-available',
    input: toolRequest.input ?? {},
    approval: isWaiting ? { id, descriptor: metadata?.interrupt } : undefined,
  });
}

function answerTool(parts: UiHistoryPart[], part: ToolResponsePart): void {
  const { toolResponse, metadata } = part;
  const id = toolCallId(toolResponse);
  const asked = parts.findLast((other) => other.toolCallId === id);
  const target = asked ?? { type: `tool-${toolResponse.name}`, toolCallId: id };
  if (!asked) parts.push(target);
  delete target.approval;
  if (isDeclined(part)) {
    Object.assign(target, { state: 'output-denied', approval: { id, approved: false } });
  } else if (metadata?.error === undefined) {
    Object.assign(target, { state: 'output-available', output: toolResponse.output ?? null });
  } else {
    Object.assign(target, { state: 'output-error', errorText: String(toolResponse.output) });
  }
}

function toTextPart(part: Part): UiHistoryPart[] {
  if ('text' in part) return [{ type: 'text', text: part.text, state: 'done' }];
  if ('reasoning' in part) return [{ type: 'reasoning', text: part.reasoning, state: 'done' }];
  if ('media' in part) {
    const { url, contentType = 'application/octet-stream' } = part.media;
    return [{ type: 'file', url, mediaType: contentType }];
  }
  return [];
}
