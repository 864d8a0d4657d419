import type { Part } from '../message.ts';

interface WithContent {
  readonly content: readonly Part[];
}

/** The text of a message or chunk, without reasoning; empty if there is none. */
export function textOf(message: WithContent | undefined): string {
  let text = '';
  for (const part of message?.content ?? []) if ('text' in part) text += part.text;
  return text;
}

/** The reasoning of a message or chunk. */
export function reasoningOf({ content }: WithContent): string {
  let text = '';
  for (const part of content) if ('reasoning' in part) text += part.reasoning;
  return text;
}
