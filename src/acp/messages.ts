import type { ContentBlock, PromptCapabilities } from '@agentclientprotocol/sdk';
import type { Message, Part } from '../protocol/message.ts';

/** The characters of a text that are kept, to recognize it. */
export const maxProof = 2_000;
/** The longest conversation that a new session of a program gets. */
const maxTold = 100_000;

/** A part of a message as a block; `undefined` if there is none for it. */
export function toBlock(part: Part): ContentBlock | undefined {
  if ('text' in part) return part.text === '' ? undefined : { type: 'text', text: part.text };
  if ('data' in part) return { type: 'text', text: JSON.stringify(part.data) };
  if ('resource' in part) return linkTo(part.resource.uri);
  if (!('media' in part)) return undefined;
  const { url, contentType = '' } = part.media;
  const [, mimeType = contentType, data] = /^data:([^;,]*);base64,(.*)$/s.exec(url) ?? [];
  if (data === undefined) return linkTo(url);
  if (mimeType.startsWith('image/')) return { type: 'image', data, mimeType };
  return mimeType.startsWith('audio/') ? { type: 'audio', data, mimeType } : undefined;
}

function linkTo(uri: string): ContentBlock {
  return { type: 'resource_link', uri, name: uri.slice(0, 200) };
}

/** A message of the user as an agent can take it. */
export function toBlocks(
  message: Message | undefined,
  { image = false, audio = false }: PromptCapabilities = {},
): ContentBlock[] {
  return (message?.content ?? []).flatMap((part): ContentBlock[] => {
    const block = toBlock(part);
    const isRefused = (block?.type === 'image' && !image) || (block?.type === 'audio' && !audio);
    if (block && !isRefused) return [block];
    return 'media' in part ? textBlocks('[A file that cannot be shown here.]') : [];
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
