import { defined, type Json, tryJson } from '../../core/json/json.ts';
import type { Message, Part } from '../../protocol/message.ts';
import { short } from '../http/answer.ts';
import { jsonIn } from '../http/body.ts';
import type { ChatMessage } from './chat-shapes.ts';
import { badRequest } from './errors.ts';
import { type CallOutput, filePart, media, type ReadInput } from './input.ts';

/** Messages of one sender that follow each other. */
export interface Step {
  readonly role: 'user' | 'assistant' | 'tool';
  readonly content: readonly Part[];
  /** The calls of the assistant, or those that the tool messages answer. */
  readonly calls: readonly ToolCall[];
}

interface ToolCall {
  readonly id: string;
  /** The name and arguments, or the result. */
  readonly name?: string;
  readonly text: string;
}

/** Reads the messages of a request: the instructions in them, and the steps of the conversation. */
export function readMessages(messages: readonly ChatMessage[]): {
  readonly instructions: readonly string[];
  readonly steps: readonly Step[];
} {
  const instructions: string[] = [];
  const steps: Step[] = [];
  for (const [index, message] of messages.entries()) {
    const at = `messages[${index}]`;
    if (message.role === 'system' || message.role === 'developer') {
      instructions.push(textIn(partsOf(message, at)));
      continue;
    }
    const step = stepOf(message, at);
    const last = steps.at(-1);
    if (last?.role !== step.role || step.role === 'assistant') steps.push(step);
    else {
      const content = [...last.content, ...step.content];
      steps.splice(-1, 1, { ...last, content, calls: [...last.calls, ...step.calls] });
    }
  }
  return { instructions, steps };
}

/** Steps as the input of a turn: all but the last one are history. */
export function toInput(steps: readonly Step[]): Omit<ReadInput, 'instructions'> {
  const last = steps.at(-1);
  const isNew = last?.role === 'user' || last?.role === 'tool';
  const outputs: readonly CallOutput[] =
    last?.role === 'tool'
      ? last.calls.map(({ id, text }) => ({ callId: toOwnId(id), output: text }))
      : [];
  const history = toMessages(isNew ? steps.slice(0, -1) : steps, outputs.length > 0);
  return { history, content: last?.role === 'user' ? last.content : [], outputs };
}

/** `isOpen`: the last call waits for what the turn brings. */
function toMessages(steps: readonly Step[], isOpen: boolean): readonly Message[] {
  let names = new Map<string, string>();
  return steps.map(({ role, content, calls }, at) => {
    if (role === 'user') return { role, content: [...content] };
    if (role === 'tool') {
      const results = calls.map(({ id, text }) => {
        const name = names.get(id);
        if (name === undefined) throw noSuchCall(id);
        return { toolResponse: { name, ref: refOf(id), output: text } };
      });
      return { role, content: results };
    }
    names = new Map(calls.map(({ id, name = '' }) => [id, name]));
    const waits = isOpen && at === steps.length - 1;
    const answered = new Set(steps[at + 1]?.calls.map(({ id }) => id));
    const unanswered = waits ? undefined : calls.find(({ id }) => !answered.has(id));
    if (unanswered) throw noOutput(unanswered.id);
    const requests = calls.map(({ id, name = '', text }) => ({
      toolRequest: { name, ref: refOf(id), input: argumentsIn(text) },
      ...(waits && { metadata: { interrupt: { executedBy: 'caller' } } }),
    }));
    return { role: 'model', content: [...content, ...requests] };
  });
}

function argumentsIn(text: string): Json {
  return tryJson(jsonIn(text)) ?? {};
}

/** The id of a call in the conversation, which the model gave it. */
export function refOf(callId: string): string {
  return callId.replace(/^call_/, '');
}

function toOwnId(callId: string): string {
  return `call_${refOf(callId)}`;
}

function stepOf(message: ChatMessage, at: string): Step {
  const { role, tool_call_id: answered, tool_calls: asked, refusal } = message;
  const content = partsOf(message, at);
  switch (role) {
    case 'user':
      return { role, content, calls: [] };
    case 'assistant': {
      const said = refusal ? [...content, { text: refusal }] : content;
      const calls = (asked ?? []).map(({ id, function: own }, index) => {
        if (own) return { id, name: own.name, text: own.arguments };
        throw badRequest('Only calls of functions are supported.', {
          param: `${at}.tool_calls[${index}]`,
          code: 'unsupported_value',
        });
      });
      return { role, content: said, calls };
    }
    case 'tool':
      if (typeof answered === 'string') {
        return { role, content: [], calls: [{ id: answered, text: textIn(content) }] };
      }
      throw badRequest('A message of the role tool needs the tool_call_id of its call.', {
        param: `${at}.tool_call_id`,
      });
    default:
      throw badRequest(
        `A message has the role user, assistant, tool, system or developer, not ${short(role)}.`,
        { param: `${at}.role` },
      );
  }
}

export function textIn(parts: readonly Part[]): string {
  return parts.map((part) => ('text' in part ? part.text : '')).join('');
}

function partsOf({ role, content }: ChatMessage, at: string): readonly Part[] {
  if (typeof content === 'string') return content === '' ? [] : [{ text: content }];
  return (content ?? []).map((part, index) => {
    const found = toPart(part, role === 'user');
    if (found) return found;
    throw badRequest(
      `Content of type ${short(part.type)} is not supported as it was sent. Send text; messages of the user can also have images by their URL, and files as data.`,
      { param: `${at}.content[${index}]`, code: 'unsupported_value' },
    );
  });
}

function toPart(part: Readonly<Record<string, unknown>>, isUser: boolean): Part | undefined {
  const { type, text, refusal, image_url: image, file } = part;
  if (type === 'text') return typeof text === 'string' ? { text } : undefined;
  if (type === 'refusal') return typeof refusal === 'string' ? { text: refusal } : undefined;
  if (!isUser) return undefined;
  if (type === 'image_url' && isRecord(image)) {
    return typeof image.url === 'string' ? media(image.url, 'image/*') : undefined;
  }
  if (type !== 'file' || !isRecord(file)) return undefined;
  return filePart(defined({ file_data: file.file_data }));
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function noSuchCall(id: string): Error {
  return badRequest(
    `The output of ${short(id)} has no call before it. Send the assistant's message with its tool_calls, too.`,
    { param: 'messages', code: 'no_tool_call_found' },
  );
}

function noOutput(id: string): Error {
  return badRequest(
    `The call ${short(id)} has no output. Answer each of tool_calls with a message of the role tool.`,
    { param: 'messages', code: 'function_call_output_expected' },
  );
}
