import { WaymarkError } from '../../core/error.ts';
import type { Json, JsonObject } from '../../core/json/json.ts';
import type { MediaPart, Part } from '../../protocol/message.ts';
import { providerMetadataKey } from '../../protocol/messages.ts';
import type {
  FileData,
  ProviderOptions,
  SpecificationVersion,
  StreamFileData,
  StreamPart,
} from './types.ts';

type Metadata = Record<string, Json | undefined>;

interface Block {
  readonly kind: 'text' | 'reasoning';
  text: string;
  metadata: Metadata | undefined;
}

/** Puts the content of a message together from the parts of a model's stream, in the order in which they began. */
export class ContentBuilder {
  readonly #content: (Block | Part)[] = [];
  readonly #open = new Map<string, Block>();

  /** Adds text to the block it belongs to. */
  append(kind: Block['kind'], id: string, delta: string, metadata?: ProviderOptions): void {
    // Text and reasoning have ids of their own in some providers.
    const key = kind === 'text' ? id : `reasoning ${id}`;
    let block = this.#open.get(key);
    if (!block) {
      block = { kind, text: '', metadata: undefined };
      this.#open.set(key, block);
      this.#content.push(block);
    }
    block.text += delta;
    if (metadata) block.metadata = withProvider(block.metadata, metadata);
  }

  /** Ends a block: later chunks with the same id start a new one. */
  end(kind: Block['kind'], id: string, citations?: readonly unknown[]): void {
    const key = kind === 'text' ? id : `reasoning ${id}`;
    const block = this.#open.get(key);
    if (!block) return;
    this.#open.delete(key);
    if (citations && citations.length > 0) {
      // Said by the provider as JSON; checked with the whole message.
      block.metadata = { ...block.metadata, citations: citations as readonly Json[] };
    }
  }

  /** Adds a part that is whole. */
  add(part: Part): void {
    this.#content.push(part);
  }

  /** The content so far. */
  toParts(): Part[] {
    const parts: Part[] = [];
    for (const item of this.#content) {
      if (!('kind' in item)) {
        parts.push(item);
        continue;
      }
      const { kind, text, metadata } = item;
      if (text === '' && !metadata) continue;
      const base = kind === 'text' ? { text } : { reasoning: text };
      parts.push(metadata ? { ...base, metadata } : base);
    }
    return parts;
  }
}

/** A file, source or custom part of a stream as a part of ours. */
export function toPart(
  part: Extract<StreamPart, { type: 'file' | 'reasoning-file' | 'source' | 'custom' }>,
): Part {
  const metadata = part.providerMetadata && withProvider(undefined, part.providerMetadata);
  if (part.type === 'custom') {
    return { custom: { kind: part.kind }, ...(metadata && { metadata }) };
  }
  if (part.type === 'source') {
    const { type: _, providerMetadata: __, ...source } = part;
    // A source is JSON by its specification; checked with the whole message.
    return { custom: { source: source as JsonObject }, ...(metadata && { metadata }) };
  }
  const { mediaType, data } = part;
  const all = part.type === 'file' ? metadata : { ...metadata, reasoning: true };
  return {
    media: { url: toMediaUrl(data, mediaType), contentType: mediaType },
    ...(all && { metadata: all }),
  };
}

/** Part metadata with what a provider wants back; of one provider, what came later wins. */
export function withProvider(before: Metadata | undefined, added: ProviderOptions): Metadata {
  const known = before?.[providerMetadataKey] as ProviderOptions | undefined;
  const merged: Record<string, JsonObject> = { ...known };
  for (const [provider, values] of Object.entries(added)) {
    merged[provider] = { ...merged[provider], ...values };
  }
  return { ...before, [providerMetadataKey]: merged };
}

/** A media part as a model of some version takes it. */
export function toFileData(
  { media }: MediaPart,
  version: SpecificationVersion,
): { readonly data: FileData; readonly mediaType: string } {
  const inline = parseDataUrl(media.url);
  if (inline) {
    const mediaType = media.contentType ?? inline.mediaType;
    const { base64 } = inline;
    return { data: version === 'v4' ? { type: 'data', data: base64 } : base64, mediaType };
  }
  const url = parseUrl(media.url);
  return {
    data: version === 'v4' ? { type: 'url', url } : url,
    mediaType: media.contentType ?? typeOfExtension(url.pathname),
  };
}

/** A file a model made, as a URL that holds it or says where it is. */
function toMediaUrl(data: StreamFileData, mediaType: string): string {
  if (typeof data === 'string') return `data:${mediaType};base64,${data}`;
  if (data instanceof Uint8Array) return `data:${mediaType};base64,${toBase64(data)}`;
  return data.type === 'url' ? String(data.url) : toMediaUrl(data.data, mediaType);
}

function parseDataUrl(url: string): { mediaType: string; base64: string } | undefined {
  if (!url.startsWith('data:')) return undefined;
  const comma = url.indexOf(',');
  if (comma < 0) throw badUrl(url);
  const [mediaType = '', ...flags] = url.slice('data:'.length, comma).split(';');
  const body = url.slice(comma + 1);
  return {
    mediaType: mediaType === '' ? 'text/plain' : mediaType,
    base64: flags.includes('base64')
      ? body
      : toBase64(new TextEncoder().encode(decodeURIComponent(body))),
  };
}

function parseUrl(url: string): URL {
  try {
    return new URL(url);
  } catch {
    throw badUrl(url);
  }
}

function badUrl(url: string): WaymarkError {
  return new WaymarkError(
    'INVALID_ARGUMENT',
    `A media part needs a data: URL or an absolute URL, not "${url.slice(0, 80)}".`,
  );
}

const types: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  svg: 'image/svg+xml',
  pdf: 'application/pdf',
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
  mp4: 'video/mp4',
  txt: 'text/plain',
};

// Most media without a type are images; models that need to know better say so.
function typeOfExtension(path: string): string {
  return types[path.slice(path.lastIndexOf('.') + 1).toLowerCase()] ?? 'image/*';
}

function toBase64(bytes: Uint8Array): string {
  let binary = '';
  // In slices: the arguments of one call must fit on the stack.
  for (let at = 0; at < bytes.length; at += 8192) {
    binary += String.fromCharCode(...bytes.subarray(at, at + 8192));
  }
  return btoa(binary);
}
