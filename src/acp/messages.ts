import type { ContentBlock, PromptCapabilities } from '@agentclientprotocol/sdk';
import type { Message, Part } from '../protocol/message.ts';
import { textOf } from '../protocol/messages.ts';

/** The longest conversation that a new session of a program is told. */
const maxTold = 100_000;

/** A message of the user as an agent can take it. */
export function toBlocks(
  message: Message | undefined,
  { image = false, audio = false }: PromptCapabilities = {},
): ContentBlock[] {
  return (message?.content ?? []).flatMap((part): ContentBlock[] => {
    if ('text' in part) return part.text === '' ? [] : [{ type: 'text', text: part.text }];
    if ('resource' in part) {
      return [{ type: 'resource_link', uri: part.resource.uri, name: part.resource.uri }];
    }
    if ('data' in part) return [{ type: 'text', text: JSON.stringify(part.data) }];
    if (!('media' in part)) return [];
    const { url, contentType = '' } = part.media;
    const [, mimeType = contentType, data] = /^data:([^;,]*);base64,(.*)$/s.exec(url) ?? [];
    if (data === undefined) return [{ type: 'resource_link', uri: url, name: url.slice(0, 200) }];
    if (image && mimeType.startsWith('image/')) return [{ type: 'image', data, mimeType }];
    if (audio && mimeType.startsWith('audio/')) return [{ type: 'audio', data, mimeType }];
    return [{ type: 'text', text: `[A file of type ${mimeType}, which cannot be shown here.]` }];
  });
}

/** The conversation so far as text, for a session that has not seen it. */
export function toldSoFar(messages: readonly Message[]): ContentBlock[] {
  if (messages.length === 0) return [];
  const speakers = { user: 'User', model: 'You', tool: 'Tool', system: 'System' } as const;
  const lines = messages.flatMap(({ role, content }) => {
    const text = content.map(partText).join('').trim();
    return text === '' ? [] : `${speakers[role]}: ${text}`;
  });
  const all = lines.join('\n\n');
  const told = all.length > maxTold ? `…${all.slice(-maxTold)}` : all;
  return [
    {
      type: 'text',
      text: `This conversation began in another session, and the files are as it left them. The conversation so far:\n\n${told}\n\nContinue with the following message.`,
    },
  ];
}

function partText(part: Part): string {
  if ('text' in part) return part.text;
  if ('toolRequest' in part) {
    const { name, input } = part.toolRequest;
    return `\n[calls ${name} ${JSON.stringify(input ?? {}).slice(0, 2_000)}]`;
  }
  if ('toolResponse' in part)
    return JSON.stringify(part.toolResponse.output ?? null).slice(0, 2_000);
  return '';
}

/** The text of blocks without white space: a program may replay a prompt in other pieces. */
export function plainText(blocks: readonly ContentBlock[]): string {
  return blocks
    .map((block) => (block.type === 'text' ? block.text : ''))
    .join('')
    .replace(/\s+/g, '');
}

export function textBlocks(text: string): ContentBlock[] {
  return [{ type: 'text', text }];
}

/** Whether a message has something to send. */
export function isEmpty(message: Message | undefined): boolean {
  return textOf(message) === '' && toBlocks(message).length === 0;
}
