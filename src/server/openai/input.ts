import { defined, type JsonObject } from '../../core/json/json.ts';
import type { Message, Part } from '../../protocol/message.ts';
import { short } from '../http/answer.ts';
import { badRequest } from './errors.ts';
import { snapshotOfCall, snapshotOfItem } from './items.ts';
import type { InputItem } from './shapes.ts';

export interface CallOutput {
  readonly callId: string;
  readonly output: string;
}

export interface ReadInput {
  /** The response that the input itself continues, by its items. */
  readonly snapshotId?: string | undefined;
  /** The signed state that a client has held. */
  readonly heldState?: string | undefined;
  /** Messages of a conversation that this server does not know, before the user's new message. */
  readonly history: readonly Message[];
  /** The content of the user's new message; empty when there is none. */
  readonly content: readonly Part[];
  /** System and developer messages. */
  readonly instructions: readonly string[];
  readonly outputs: readonly CallOutput[];
  /** Settings of the model that only Chat Completions has. */
  readonly sampling?: JsonObject | undefined;
}

/**
 * Reads the input of a request. Many clients send the whole conversation each time: of what they got from this server the last
 * item counts, which says where the conversation stands, and what follows it is new.
 */
export function readInput(input: string | readonly InputItem[]): ReadInput {
  if (typeof input === 'string') {
    const content = input === '' ? [] : [{ text: input }];
    return { history: [], content, instructions: [], outputs: [] };
  }
  const known = input.findLastIndex((item) => heldStateOf(item) ?? snapshotOfOutput(item));
  const last = input[known];
  const heldState = last && heldStateOf(last);
  const outputs: CallOutput[] = [];
  const instructions = input.filter(isInstruction).map(instructionOf);
  const messages: Message[] = [];
  for (const [offset, item] of input.slice(known + 1).entries()) {
    const at = `input[${known + 1 + offset}]`;
    if (isInstruction(item)) continue;
    if (item.type === 'function_call_output') outputs.push(callOutput(item, at));
    else messages.push(messageOf(item, at));
  }
  const { history, content } = splitMessages(messages);
  const asked = outputs.map(({ callId }) => snapshotOfCall(callId)).find((id) => id !== undefined);
  // The state says more than the items.
  const snapshotId =
    heldState === undefined ? ((last && snapshotOfOutput(last)) ?? asked) : undefined;
  return { history, content, instructions, outputs, heldState, snapshotId };
}

export function toMessages(items: readonly InputItem[]): readonly Message[] {
  return items.map((item, at) => messageOf(item, `items[${at}]`));
}

// The user's last messages are one turn; everything before them is history.
function splitMessages(messages: readonly Message[]): {
  readonly history: readonly Message[];
  readonly content: readonly Part[];
} {
  const from = messages.findLastIndex(({ role }) => role !== 'user') + 1;
  return {
    history: messages.slice(0, from),
    content: messages.slice(from).flatMap(({ content }) => content),
  };
}

function heldStateOf(item: InputItem): string | undefined {
  const isCompact = item.type === 'compaction' && snapshotOfItem(item.id) === undefined;
  if (item.type !== 'reasoning' && !isCompact) return undefined;
  const { encrypted_content: content } = item;
  return typeof content === 'string' && content !== '' ? content : undefined;
}

/** The response that an item came from, if it is one that this server gave out. */
function snapshotOfOutput(item: InputItem): string | undefined {
  if (item.type === 'function_call_output') return undefined;
  if (item.type === 'function_call') return snapshotOfItem(item.id) ?? snapshotOfCall(item.call_id);
  return snapshotOfItem(item.id);
}

function isInstruction({ type = 'message', role }: InputItem): boolean {
  return type === 'message' && (role === 'system' || role === 'developer');
}

function instructionOf(item: InputItem): string {
  const { content } = item;
  if (typeof content === 'string') return content;
  return (content ?? []).map(({ text }) => (typeof text === 'string' ? text : '')).join('');
}

function callOutput({ call_id: callId, output }: InputItem, at: string): CallOutput {
  if (typeof callId !== 'string') {
    throw badRequest('A function_call_output needs the call_id of its function_call.', {
      param: `${at}.call_id`,
    });
  }
  if (typeof output === 'string') return { callId, output };
  if (!Array.isArray(output)) {
    throw badRequest('The output of a function call is a text, or a list of content parts.', {
      param: `${at}.output`,
    });
  }
  const texts = output.map((part: unknown) =>
    typeof part === 'object' && part !== null && 'text' in part ? String(part.text) : undefined,
  );
  if (texts.includes(undefined)) {
    throw badRequest('Outputs of function calls can only have text here.', {
      param: `${at}.output`,
      code: 'unsupported_value',
    });
  }
  return { callId, output: texts.join('') };
}

function messageOf(item: InputItem, at: string): Message {
  const { type = 'message', role, content } = item;
  if (type === 'item_reference') {
    throw badRequest(
      `There is no item ${short(item.id ?? '')} here. With \`store: false\` send the items themselves.`,
      { param: `${at}.id`, code: 'item_not_found' },
    );
  }
  if (type !== 'message') {
    throw badRequest(`Items of type ${short(type)} are not supported.`, {
      param: `${at}.type`,
      code: 'unsupported_value',
    });
  }
  const known = Object.hasOwn(roles, role ?? '') ? roles[role ?? ''] : undefined;
  if (known !== undefined) return { role: known, content: toParts(content ?? '', at) };
  throw badRequest('A message has the role user, assistant, system or developer.', {
    param: `${at}.role`,
  });
}

const roles: Readonly<Record<string, Message['role']>> = {
  assistant: 'model',
  system: 'system',
  developer: 'system',
  user: 'user',
};

function toParts(content: NonNullable<InputItem['content']>, at: string): Part[] {
  if (typeof content === 'string') return [{ text: content }];
  return content.map((part, index) => {
    const found = toPart(part);
    if (found) return found;
    const { type } = part;
    throw badRequest(
      `Content of type ${short(type)} is not supported as it was sent. Send text, or images and files by their URL or as data.`,
      { param: `${at}.content[${index}]`, code: 'unsupported_value' },
    );
  });
}

function toPart(part: Readonly<Record<string, unknown>>): Part | undefined {
  switch (part.type) {
    case 'input_text':
    case 'output_text':
    case 'text':
      return typeof part.text === 'string' ? { text: part.text } : undefined;
    case 'refusal':
      return typeof part.refusal === 'string' ? { text: part.refusal } : undefined;
    case 'input_image':
      return typeof part.image_url === 'string' ? media(part.image_url, 'image/*') : undefined;
    case 'input_file':
      return filePart(part);
    default:
      return undefined;
  }
}

export function filePart(part: Readonly<Record<string, unknown>>): Part | undefined {
  const { file_data: data, file_url: url } = part;
  if (typeof url === 'string') return media(url);
  if (typeof data !== 'string') return undefined;
  return media(data.startsWith('data:') ? data : `data:application/octet-stream;base64,${data}`);
}

export function media(url: string, otherwise?: string): Part {
  const [, type] = /^data:([\w.+-]+\/[\w.+-]+)/.exec(url) ?? [];
  return { media: { url, ...defined({ contentType: type ?? otherwise }) } };
}
