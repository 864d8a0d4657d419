import type { Message, Role } from '../protocol/message.ts';
import { textMessage } from '../protocol/parse.ts';

/**
 * A message at rest, behind those that came before it. Nearly every message is one text of one side; of such a one only the
 * text is kept, as the objects around it take 200 bytes more. A list of links has no room to spare, and histories share what
 * they begin with.
 */
export interface Link {
  readonly before: Link | undefined;
  readonly role: Role;
  readonly content: string | Message;
}

/** A hash over the messages up to one, as a number: it takes 48 bytes, its digits take 80. */
export type Chain = bigint;

/** A history at rest: its last message, how many there are, and the chain over them. */
export interface CompactMessage extends Link {
  readonly length: number;
  readonly chain: Chain;
}

/** The compact history extended by these messages, of which there is at least one. */
export function compactAfter(
  base: CompactMessage | undefined,
  messages: readonly Message[],
  chain: Chain,
): CompactMessage {
  const end = messages.length - 1;
  let before: Link | undefined = base;
  for (let at = 0; at < end; at++) {
    const message = messages[at] as Message;
    before = { before, role: message.role, content: contentOf(message) };
  }
  const last = messages[end] as Message;
  return {
    before,
    role: last.role,
    content: contentOf(last),
    length: (base?.length ?? 0) + messages.length,
    chain,
  };
}

/** The longest history at rest that this one began as, up to a length. */
export function compactWithin(
  rest: CompactMessage | undefined,
  length: number,
): CompactMessage | undefined {
  for (let link: Link | undefined = rest; link !== undefined; link = link.before) {
    if (isRest(link) && link.length <= length) return link;
  }
  return undefined;
}

/** The message that was put to rest, or one that says the same. */
export function expandMessage({ role, content }: Link): Message {
  return typeof content === 'string' ? textMessage(role, content) : content;
}

/** The chain up to here, where it is known. */
export function chainOf(link: Link): Chain | undefined {
  return isRest(link) ? link.chain : undefined;
}

function isRest(link: Link): link is CompactMessage {
  return 'chain' in link;
}

function contentOf(message: Message): string | Message {
  const [part, ...others] = message.content;
  const isPlain =
    part !== undefined &&
    others.length === 0 &&
    'text' in part &&
    Object.keys(part).length === 1 &&
    Object.keys(message).length === 2;
  return isPlain ? part.text : message;
}
