import type { Message, Part, Role, ToolRequestPart } from '../protocol/message.ts';

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

/** A message that carries the results of tools. */
export function toolMessage(content: Content): Message {
  return messageOf('tool', content);
}

/** All text of a message or chunk, reasoning left out. */
export function textOf({ content }: { readonly content: readonly Part[] }): string {
  let text = '';
  for (const part of content) if ('text' in part) text += part.text;
  return text;
}

/** All reasoning of a message or chunk. */
export function reasoningOf({ content }: { readonly content: readonly Part[] }): string {
  let text = '';
  for (const part of content) if ('reasoning' in part) text += part.reasoning;
  return text;
}

/** The tool requests of a message or chunk that are ours to answer: not those the provider ran itself. */
export function toolRequestsOf({
  content,
}: {
  readonly content: readonly Part[];
}): ToolRequestPart[] {
  return content.filter(
    (part): part is ToolRequestPart =>
      'toolRequest' in part && part.metadata?.providerExecuted !== true,
  );
}

function messageOf(role: Role, content: Content): Message {
  return { role, content: toParts(content) };
}
