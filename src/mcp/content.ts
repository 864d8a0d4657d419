import type { Client, ContentBlock, PromptMessage } from '@modelcontextprotocol/client';
import type { Message, Part } from '../protocol/message.ts';
import { toPart } from './tool-result.ts';

/** The content of a resource of a server, as parts of a message. */
export async function readContent(
  client: Client,
  uri: string,
  options: { readonly signal: AbortSignal; readonly timeout: number },
): Promise<readonly Part[]> {
  const { contents } = await client.readResource({ uri }, options);
  return contents.map((resource) =>
    'text' in resource ? { text: resource.text } : messagePart({ type: 'resource', resource }),
  );
}

/** The messages of a prompt of a server. */
export function toMessages(messages: readonly PromptMessage[]): readonly Message[] {
  return messages.map(({ role, content }) => ({
    role: role === 'assistant' ? 'model' : 'user',
    content: [messagePart(content)],
  }));
}

function messagePart(block: ContentBlock): Part {
  if (block.type === 'text') return { text: block.text };
  // A part with media or data: what tools give back is also what messages hold.
  return toPart(block) as unknown as Part;
}
