import type { Message, Role } from '../protocol/message.ts';
import { plainTextOf } from '../protocol/messages.ts';
import { textMessage } from '../protocol/parse.ts';

/**
 * A message at rest, behind those that came before it. Nearly every message is one text of one side; of such a one only the
 * text is kept, as the objects around it take 200 bytes more. A list of links has no room to spare, and histories share what
 * they begin with.
 */
export class Link {
  readonly before: Link | undefined;
  readonly role: Role;
  readonly content: string | Message;

  constructor(before: Link | undefined, role: Role, content: string | Message) {
    this.before = before;
    this.role = role;
    this.content = content;
  }
}

/** A history at rest: its last message, how many there are, and the chain over them. */
export class CompactMessage extends Link {
  readonly length: number;
  /** As a number it takes 48 bytes, its digits take 80. */
  readonly chain: bigint;

  constructor(before: Link | undefined, message: Message, length: number, chain: string) {
    super(before, message.role, contentOf(message));
    this.length = length;
    this.chain = BigInt(`0x${chain}`);
  }
}

/** The compact history extended by these messages, of which there is at least one. */
export function compactAfter(
  base: CompactMessage | undefined,
  messages: readonly Message[],
  chain: string,
): CompactMessage {
  let before: Link | undefined = base;
  for (const message of messages.slice(0, -1)) {
    before = new Link(before, message.role, contentOf(message));
  }
  const length = (base?.length ?? 0) + messages.length;
  return new CompactMessage(before, messages.at(-1) as Message, length, chain);
}

/** The longest history at rest that this one began as, up to a length. */
export function compactWithin(end: Link | undefined, length: number): CompactMessage | undefined {
  for (let link = end; link !== undefined; link = link.before) {
    if (link instanceof CompactMessage && link.length <= length) return link;
  }
  return undefined;
}

/** The message that was put to rest, or one that says the same. */
export function expandMessage({ role, content }: Link): Message {
  return typeof content === 'string' ? textMessage(role, content) : content;
}

/** The chain up to here in hex, where it is known. */
export function chainOf(link: Link): string | undefined {
  return link instanceof CompactMessage ? link.chain.toString(16).padStart(64, '0') : undefined;
}

/** The stored form of a message: only its text, if it has nothing else. */
function contentOf(message: Message): string | Message {
  return plainTextOf(message) ?? message;
}
