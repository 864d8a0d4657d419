import type { Message, Part, Role } from '../protocol/message.ts';

/** What a message may be written as: a text, a part, or several parts. */
export type Content = string | Part | readonly Part[];

/** Content as the parts of a message. */
export function toParts(content: Content): Part[] {
  if (typeof content === 'string') return [{ text: content }];
  return 'length' in content ? [...content] : [content];
}

/** A message of the user. */
export function userMessage(content: Content): Message {
  return messageOf('user', content);
}

/** A message of the model. */
export function modelMessage(content: Content): Message {
  return messageOf('model', content);
}

/** A message that instructs the model. */
export function systemMessage(content: Content): Message {
  return messageOf('system', content);
}

/** A message with tool results. */
export function toolMessage(content: Content): Message {
  return messageOf('tool', content);
}

function messageOf(role: Role, content: Content): Message {
  return { role, content: toParts(content) };
}
