import { interruptsOf } from '../../api/interrupts.ts';
import type { Json } from '../../core/json/json.ts';
import { isSnapshotId } from '../../protocol/ids.ts';
import type { Message, Part, ToolResponsePart } from '../../protocol/message.ts';
import { requestKey } from '../../protocol/messages.ts';
import { turnsOf } from '../http/turns-of.ts';

const uuid = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';
const responsePattern = new RegExp(`^(?:resp_)?(${uuid})$`);
const itemPattern = new RegExp(`^(?:msg|rs|fc|fco|cmp)_(${uuid})_`);
const callPattern = new RegExp(`^call_(${uuid})_`);

/** The kinds of items, as their ids begin: messages, reasoning, function calls, the outputs of those, and compacted conversations. */
export type ItemKind = 'msg' | 'rs' | 'fc' | 'fco' | 'cmp';

/** The id of a response: that of the snapshot which its turn leaves. */
export function toResponseId(snapshotId: string): string {
  return `resp_${snapshotId}`;
}

/** The snapshot of a response; `undefined` for a text that is no such id. */
export function snapshotOfResponse(responseId: string): string | undefined {
  return responsePattern.exec(responseId)?.[1];
}

/** The id of an item, which names the response that it belongs to. */
export function toItemId(kind: ItemKind, snapshotId: string, place: number | string): string {
  return `${kind}_${snapshotId}_${place}`;
}

/** The snapshot of the response that an item belongs to. */
export function snapshotOfItem(itemId: unknown): string | undefined {
  return typeof itemId === 'string' ? itemPattern.exec(itemId)?.[1] : undefined;
}

/**
 * The id of a function call. It names the response that waits for its output: many clients send the output back without saying
 * which response it belongs to.
 */
export function toCallId(
  snapshotId: string | undefined,
  { toolName, ref = toolName }: { readonly toolName: string; readonly ref?: string | undefined },
): string {
  return snapshotId === undefined ? `call_${ref}` : `call_${snapshotId}_${ref}`;
}

/** The snapshot that waits for the output of a function call. */
export function snapshotOfCall(callId: unknown): string | undefined {
  return typeof callId === 'string' ? callPattern.exec(callId)?.[1] : undefined;
}

/** When a response was created, in seconds since 1970. Ids of snapshots begin with the time. */
export function createdAt(snapshotId: string): number {
  if (!isSnapshotId(snapshotId)) return 0;
  return Math.floor(Number.parseInt(snapshotId.slice(0, 8) + snapshotId.slice(9, 13), 16) / 1000);
}

/** An item of a response or a conversation. */
export interface Item {
  readonly id: string;
  readonly type: string;
  readonly [field: string]: unknown;
}

/** The kinds of text that a model answers with: the names and fields under which clients know each. */
export const texts = {
  message: {
    idPrefix: 'msg',
    event: 'response.output_text',
    partEvent: 'response.content_part',
    place: { content_index: 0 },
    more: { logprobs: [] },
    toPart: (text: string) => ({ type: 'output_text', text, annotations: [], logprobs: [] }),
  },
  reasoning: {
    idPrefix: 'rs',
    event: 'response.reasoning_summary_text',
    partEvent: 'response.reasoning_summary_part',
    place: { summary_index: 0 },
    more: {},
    toPart: (text: string) => ({ type: 'summary_text', text }),
  },
} as const;

export type TextKind = keyof typeof texts;

export function textItem(
  kind: TextKind,
  id: string,
  text: string | undefined,
  status: 'in_progress' | 'completed' | 'incomplete' = 'completed',
): Item {
  const parts = text === undefined ? [] : [texts[kind].toPart(text)];
  return kind === 'reasoning'
    ? { id, type: kind, summary: parts }
    : { id, type: kind, role: 'assistant', status, content: parts };
}

export function textOfItem({ content, summary }: Item): string {
  const parts = (content ?? summary ?? []) as readonly { readonly text: string }[];
  return parts.map(({ text }) => text).join('');
}

/** A tool call that waits for the caller. */
export function callItem(
  id: string,
  callId: string,
  { toolName, input }: { readonly toolName: string; readonly input?: Json | undefined },
): Item {
  return {
    id,
    type: 'function_call',
    call_id: callId,
    name: toolName,
    arguments: JSON.stringify(input ?? {}),
    status: 'completed',
  };
}

export interface TurnMessages {
  readonly snapshotId: string;
  readonly messages: readonly Message[];
}

/** The messages of a state by turns. Those after the last snapshot belong to `last`, the snapshot that is being read. */
export function turnsIn(stored: readonly Message[], last: string): readonly TurnMessages[] {
  return turnsOf(stored).map(({ messages, snapshotId = last }) => ({ messages, snapshotId }));
}

/** The input of a turn: messages, or the outputs of the function calls that the turn before it waited for. */
export function inputItems(
  { snapshotId, messages }: TurnMessages,
  before: TurnMessages | undefined,
): readonly Item[] {
  const given = messages.slice(0, firstAnswer(messages));
  const asked = askedBy(before);
  const parts = given.flatMap((message): readonly (Part | { message: Message })[] =>
    message.role === 'tool' ? message.content : [{ message }],
  );
  return parts.flatMap((part, at) => {
    if ('message' in part)
      return [messageItem(toItemId('msg', snapshotId, `i${at}`), part.message)];
    if (!('toolResponse' in part)) return [];
    // The outputs of other tools stay on the server.
    const callId = asked.get(requestKey(part.toolResponse));
    return callId === undefined ? [] : [outputItem(toItemId('fco', snapshotId, at), callId, part)];
  });
}

/** The answer of a turn: texts in their order, and the tool calls that wait for the caller. */
export function outputItems(turn: TurnMessages): readonly Item[] {
  return answerItems(turn).filter(({ role }) => role !== 'user');
}

/** The same with the messages that were added while the turn ran. */
function answerItems({ snapshotId, messages }: TurnMessages): readonly Item[] {
  const answer = messages.slice(firstAnswer(messages));
  let count = 0;
  const items = answer.flatMap((message, at) => {
    if (message.role === 'user') {
      return [messageItem(toItemId('msg', snapshotId, `s${at}`), message)];
    }
    if (message.role !== 'model') return [];
    return textsOf(message).map(({ kind, text }) =>
      textItem(kind, toItemId(texts[kind].idPrefix, snapshotId, count++), text),
    );
  });
  const waiting = new Map(
    answer.flatMap(interruptsOf).map((interrupt) => [interrupt.key, interrupt]),
  );
  const calls = [...waiting.values()].map((interrupt) =>
    callItem(toItemId('fc', snapshotId, count++), toCallId(snapshotId, interrupt), interrupt),
  );
  return [...items, ...calls];
}

export function conversationItems(turns: readonly TurnMessages[]): readonly Item[] {
  return turns.flatMap((turn, at) => [...inputItems(turn, turns[at - 1]), ...answerItems(turn)]);
}

/** The message that began a turn. Others may have been added while it ran. */
export function inputMessage(messages: readonly Message[]): number {
  return messages.findLastIndex(
    ({ role, metadata }) => role === 'user' && metadata?.steered === undefined,
  );
}

/** The ids of the calls that a turn waited for, by request key. */
function askedBy(turn: TurnMessages | undefined): ReadonlyMap<string, string> {
  const interrupts = turn?.messages.flatMap(interruptsOf) ?? [];
  return new Map(
    interrupts.map((interrupt) => [interrupt.key, toCallId(turn?.snapshotId, interrupt)]),
  );
}

// The answer begins after the user's message; without one, after the outputs of function calls.
function firstAnswer(messages: readonly Message[]): number {
  const said = inputMessage(messages);
  if (said !== -1) return said + 1;
  const first = messages.findIndex(({ role }) => role !== 'tool' && role !== 'system');
  return first === -1 ? messages.length : first;
}

/** The texts of a message of the model; parts of one kind that follow each other are one text. */
function textsOf({ content }: Message): { readonly kind: TextKind; readonly text: string }[] {
  const found: { kind: TextKind; text: string }[] = [];
  let isOpen = false;
  for (const part of content) {
    const next = textPart(part);
    if (next?.text === '') continue;
    const last = found.at(-1);
    if (next && isOpen && last?.kind === next.kind) last.text += next.text;
    else if (next) found.push(next);
    isOpen = next !== undefined;
  }
  return found;
}

/** A part of an answer as a text that a client can see. */
export function textPart(part: Part): { kind: TextKind; text: string } | undefined {
  if ('text' in part) return { kind: 'message', text: part.text };
  if ('reasoning' in part) return { kind: 'reasoning', text: part.reasoning };
  return undefined;
}

function messageItem(id: string, { role, content }: Message): Item {
  const shown = role === 'model' ? 'assistant' : role;
  const parts = content.flatMap(role === 'model' ? answerContent : inputContent);
  return { id, type: 'message', role: shown, status: 'completed', content: parts };
}

function answerContent(part: Part): object[] {
  return 'text' in part ? [texts.message.toPart(part.text)] : [];
}

function inputContent(part: Part): object[] {
  if ('text' in part) return [{ type: 'input_text', text: part.text }];
  if (!('media' in part)) return [];
  const { url, contentType } = part.media;
  return contentType?.startsWith('image/') === true || url.startsWith('data:image/')
    ? [{ type: 'input_image', image_url: url, file_id: null, detail: 'auto' }]
    : [{ type: 'input_file', file_url: url }];
}

function outputItem(id: string, callId: string, { toolResponse }: ToolResponsePart): Item {
  const { output = null } = toolResponse;
  return {
    id,
    type: 'function_call_output',
    call_id: callId,
    output: typeof output === 'string' ? output : JSON.stringify(output),
    status: 'completed',
  };
}
