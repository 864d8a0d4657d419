import type { Message, Role } from '../protocol/message.ts';
import { plainTextOf } from '../protocol/messages/text.ts';
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

/** A history at rest: its last message, how many there are, and the chain over them. */
export interface CompactMessage extends Link {
  readonly length: number;
  /** As a number it takes 48 bytes, its digits take 80. */
  readonly chain: bigint;
}

/** The compact history extended by these messages, of which there is at least one. */
export function compactAfter(
  base: CompactMessage | undefined,
  messages: readonly Message[],
  chain: string,
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
    chain: BigInt(`0x${chain}`),
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

/** The chain up to here in hex, where it is known. */
export function chainOf(link: Link): string | undefined {
  return isRest(link) ? hexOf(link.chain) : undefined;
}

/** The digits of a chain. */
export function hexOf(chain: bigint): string {
  return chain.toString(16).padStart(64, '0');
}

function isRest(link: Link): link is CompactMessage {
  return 'chain' in link;
}

function contentOf(message: Message): string | Message {
  return plainTextOf(message) ?? message;
}
