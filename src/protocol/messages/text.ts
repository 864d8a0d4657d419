import type { Message, Part } from '../message.ts';

interface WithContent {
  readonly content: readonly Part[];
}

/** The text of a message or chunk, without reasoning; empty if there is none. */
export function textOf(message: WithContent | undefined): string {
  let text = '';
  for (const part of message?.content ?? []) if ('text' in part) text += part.text;
  return text;
}

/** The text of a message that has one text part and nothing else. */
export function plainTextOf(message: Message): string | undefined {
  const { content } = message;
  const part = content[0];
  if (part === undefined || content.length > 1 || !('text' in part)) return undefined;
  const isPlain = Object.keys(part).length === 1 && Object.keys(message).length === 2;
  // A message that was read from a damaged file may have anything there.
  return isPlain && typeof part.text === 'string' ? part.text : undefined;
}

/** The reasoning of a message or chunk. */
export function reasoningOf({ content }: WithContent): string {
  let text = '';
  for (const part of content) if ('reasoning' in part) text += part.reasoning;
  return text;
}
