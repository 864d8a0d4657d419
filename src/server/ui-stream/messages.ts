import type { Message, Part } from '../../protocol/message.ts';
import { isInterrupted } from '../../protocol/messages.ts';
import { isDeclined, toolCallId } from './shapes.ts';

/** A message as `useChat` holds it. */
export interface UiHistoryMessage {
  readonly id: string;
  readonly role: 'user' | 'assistant';
  readonly parts: UiHistoryPart[];
  /** For an answer: the snapshot after it. */
  readonly metadata?: { readonly snapshotId: string };
}

type UiHistoryPart = { type: string; [field: string]: unknown };

/**
 * A session's messages for a page that is loaded again. All that a turn answered is one message, under the id of its
 * snapshot, as it was when it streamed. A turn that begins with results answers interrupts: it continues the message before.
 */
export function toUiMessages(messages: readonly Message[]): readonly UiHistoryMessage[] {
  const result: UiHistoryMessage[] = [];
  let turn: Message[] = [];
  const endTurn = (): void => {
    if (turn.length === 0) return;
    const snapshotId = snapshotOf(turn);
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
      result.push({ id, role: 'assistant', parts, ...(metadata && { metadata }) });
    }
    turn = [];
  };
  for (const message of messages) {
    if (message.role === 'user' && turn.some(({ role }) => role !== 'user')) endTurn();
    turn.push(message);
    if (snapshotOf([message]) !== undefined) endTurn();
  }
  endTurn();
  return result;
}

function snapshotOf(turn: readonly Message[]): string | undefined {
  const id = turn.at(-1)?.metadata?.snapshotId;
  return typeof id === 'string' ? id : undefined;
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

function askTool(parts: UiHistoryPart[], part: Part & { toolRequest: { name: string } }): void {
  const { toolRequest, metadata } = part as Extract<Part, { toolRequest: unknown }>;
  const id = toolCallId(toolRequest);
  const interrupted = isInterrupted({ metadata });
  parts.push({
    type: `tool-${toolRequest.name}`,
    toolCallId: id,
    state: interrupted ? 'approval-requested' : 'input-available',
    input: toolRequest.input ?? {},
    ...(interrupted && { approval: { id, descriptor: metadata?.interrupt } }),
  });
}

function answerTool(parts: UiHistoryPart[], part: Extract<Part, { toolResponse: unknown }>): void {
  const { toolResponse, metadata } = part;
  const asked = parts.findLast((other) => other.toolCallId === toolCallId(toolResponse));
  const target = asked ?? {
    type: `tool-${toolResponse.name}`,
    toolCallId: toolCallId(toolResponse),
  };
  if (!asked) parts.push(target);
  delete target.approval;
  if (isDeclined(part)) {
    const approval = { id: toolCallId(toolResponse), approved: false };
    Object.assign(target, { state: 'output-denied', approval });
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
