import type {
  CallToolResult,
  Client,
  ContentBlock,
  PromptMessage,
} from '@modelcontextprotocol/client';
import { WaymarkError } from '../core/error.ts';
import { defined, type Json, type JsonObject, toJson } from '../core/json/json.ts';
import type { Message, Part } from '../protocol/message.ts';

/** The result of a tool: what the model reads as data, and media and links besides. */
export interface ToolResultParts {
  readonly output: Json;
  readonly content: readonly JsonObject[];
}

/**
 * The result of a tool of a server. Structured content is the output; else the text is. Images, audio, links and embedded
 * resources become content. A result that says that the tool failed is thrown, with its text for the model.
 */
export function fromToolResult(result: CallToolResult, tool: string): ToolResultParts {
  const { content = [], structuredContent, isError } = result;
  const texts = content.flatMap((block) => (block.type === 'text' ? [block.text] : []));
  const text = texts.join('\n');
  if (isError === true) {
    throw new WaymarkError('UNKNOWN', text === '' ? `Tool "${tool}" failed.` : text);
  }
  const others = content.flatMap((block) => (block.type === 'text' ? [] : [toPart(block)]));
  if (structuredContent !== undefined) {
    return { output: toJson(structuredContent, `The result of tool "${tool}"`), content: others };
  }
  return { output: texts.length === 0 && others.length > 0 ? null : text, content: others };
}

function toPart(block: Exclude<ContentBlock, { type: 'text' }>): JsonObject {
  switch (block.type) {
    case 'image':
    case 'audio':
      return media(block.mimeType, block.data);
    case 'resource_link': {
      const { uri, name, title, description, mimeType } = block;
      return { data: { resourceLink: defined({ uri, name, title, description, mimeType }) } };
    }
    case 'resource':
      return embedded(block.resource);
    default:
      // A later version of the protocol may have other kinds.
      return { data: toJson(block, 'A part of a tool result') };
  }
}

/** The content of a resource as a part: text as data with its URI, what a model can see as media. */
function embedded(
  resource: { uri: string; mimeType?: string | undefined } & ({ text: string } | { blob: string }),
): JsonObject {
  const { uri, mimeType } = resource;
  if ('text' in resource) {
    return { data: { resource: defined({ uri, mimeType, text: resource.text }) } };
  }
  if (mimeType !== undefined && /^(image|audio|video)\/|^application\/pdf$/.test(mimeType)) {
    return media(mimeType, resource.blob);
  }
  // A model cannot read it, but should know what it is.
  const bytes = Math.floor((resource.blob.length * 3) / 4);
  return { data: { resource: defined({ uri, mimeType, bytes }) } };
}

function media(contentType: string, base64: string): JsonObject {
  return { media: { url: `data:${contentType};base64,${base64}`, contentType } };
}

export async function readContent(
  client: Client,
  uri: string,
  options: { readonly signal: AbortSignal; readonly timeout: number },
): Promise<Part[]> {
  const { contents } = await client.readResource({ uri }, options);
  return contents.map((resource) =>
    'text' in resource ? { text: resource.text } : messagePart({ type: 'resource', resource }),
  );
}

export function toMessages(messages: readonly PromptMessage[]): readonly Message[] {
  return messages.map(({ role, content }) => ({
    role: role === 'assistant' ? 'model' : 'user',
    content: [messagePart(content)],
  }));
}

function messagePart(block: ContentBlock): Part {
  if (block.type === 'text') return { text: block.text };
  // Parts with media or data have the same shape in tool results and in messages.
  return toPart(block) as unknown as Part;
}
