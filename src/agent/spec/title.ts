import { textOf } from '../../protocol/messages/text.ts';
import type { SessionState } from '../../session/session-state.ts';
import type { AgentSpec } from './spec.ts';

type MakeTitle = (state: { readonly messages: never; readonly custom: never }) => unknown;

/** How long a title becomes at most. */
const maxLength = 80;

/** How the sessions of an agent get their titles. */
export function titleBy(title: false | MakeTitle | undefined): AgentSpec['titleOf'] {
  if (title === false) return () => undefined;
  if (title === undefined) return firstMessage;
  return ({ history, custom }) => {
    // The type of the custom state is that of the agent's schema.
    const made = title({ messages: history.messages as never, custom: custom as never });
    return typeof made === 'string' ? shorten(made) : undefined;
  };
}

function firstMessage({ history }: SessionState): string | undefined {
  const first = history.messages.find(({ role }) => role === 'user');
  return shorten(textOf(first));
}

/** A text as one line of bounded length; `undefined` if there is nothing in it. */
function shorten(text: string): string | undefined {
  // A long text need not be looked through for a short title.
  const line = text
    .slice(0, maxLength * 10)
    .replace(/\s+/g, ' ')
    .trim();
  if (line === '') return undefined;
  if (line.length <= maxLength) return line;
  const characters = [...line];
  return characters.length <= maxLength
    ? line
    : `${characters
        .slice(0, maxLength - 1)
        .join('')
        .trimEnd()}…`;
}
